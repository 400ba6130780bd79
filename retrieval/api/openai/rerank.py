"""POST /v1/rerank and /v2/rerank: order texts by their relevance to a query, in the shapes of Cohere and Jina."""

import math
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel, ConfigDict, Field

from corecube.api import principal_of
from corecube.database import release_connection
from retrieval.api.openai.embeddings import WAIT_SECONDS, checked_texts
from retrieval.api.schemas import REFUSALS, RequestBody
from retrieval.encoders import Encoder, OnnxEncoder
from retrieval.encoders.late_interaction import LateInteraction
from retrieval.encoders.reranker import Reranker, checked_scores
from retrieval.engine.types import ScoreType
from retrieval.index import active
from retrieval.search import runtime

_SECONDS: Final = 30.0
first_router = Router(tags=["openai"])
second_router = Router(tags=["openai"])


class TextIn(RequestBody):
    """A document as an object."""

    text: str


class RerankIn(RequestBody):
    """A query and the texts to order."""

    model_config = ConfigDict(hide_input_in_errors=True)

    model: str | None = Field(default=None, description="Ignored: the response names the model that was used.")
    query: str = Field(min_length=1)
    documents: list[str | TextIn] = Field(description="The texts, as strings or objects with `text`.")
    top_n: int | None = Field(default=None, ge=1, description="Number of results; default: all.")
    return_documents: bool | None = Field(default=None, description="Whether results contain their texts.")


class RerankedOut(BaseModel):
    """A text's place in the request, and its relevance."""

    index: int
    relevance_score: float = Field(description="0 to 1; comparable within a response.")
    document: TextIn | None = None


class RerankUsageOut(BaseModel):
    """Token counts by the embedding model's tokenizer."""

    total_tokens: int


class RerankOut(BaseModel):
    """The most relevant texts first."""

    id: str
    model: str = Field(description="The model that was used.")
    results: list[RerankedOut]
    usage: RerankUsageOut
    meta: dict[str, Any]


@first_router.post("/rerank", response={200: RerankOut, **REFUSALS}, exclude_unset=True, summary="Rerank texts")
def rerank_with_texts(request: HttpRequest, body: RerankIn) -> RerankOut:
    """Order texts by the installation's reranker; without one, by late interaction of the embedding model.

    Results contain their texts unless `return_documents` is false, as Jina's do.
    """
    return _reranked(request, body, version="1", has_texts=body.return_documents is not False)


@second_router.post("/rerank", response={200: RerankOut, **REFUSALS}, exclude_unset=True, summary="Rerank texts")
def rerank(request: HttpRequest, body: RerankIn) -> RerankOut:
    """Order texts as /v1/rerank does. Results contain no texts unless `return_documents` is true, as Cohere's do."""
    return _reranked(request, body, version="2", has_texts=body.return_documents is True)


def _reranked(request: HttpRequest, body: RerankIn, *, version: str, has_texts: bool) -> RerankOut:
    principal_of(request)
    texts = checked_texts("documents", [it if isinstance(it, str) else it.text for it in body.documents])
    encoder = active.encoder()
    reranker = _ready(runtime.reranker(), encoder)
    release_connection()
    with runtime.admission().query(budget_seconds=WAIT_SECONDS):
        scores = checked_scores(reranker.score(body.query, texts, timeout_seconds=_SECONDS), count=len(texts))
    relevance = [_relevance(it, reranker.score_type) for it in scores]
    order = sorted(range(len(texts)), key=lambda index: (-scores[index], index))[: body.top_n]
    results = [RerankedOut(index=index, relevance_score=relevance[index]) for index in order]
    if has_texts:
        results = [it.model_copy(update={"document": TextIn(text=texts[it.index])}) for it in results]
    return RerankOut(
        id=str(uuid4()),
        model=reranker.name,
        results=results,
        usage=RerankUsageOut(total_tokens=sum(encoder.count_tokens([body.query, *texts]))),
        meta={"api_version": {"version": version}, "billed_units": {"search_units": 1}},
    )


def _ready(configured: Reranker | None, encoder: Encoder) -> Reranker:
    if configured is not None and not configured.problem:
        return configured
    return LateInteraction(encoder) if isinstance(encoder, OnnxEncoder) else Cosines(encoder)


class Cosines:
    """The cosine of an embedding model's vectors, in place of a reranker."""

    score_type = ScoreType.COSINE
    blend_weight: float | None = None
    problem = ""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.name = f"cosine of {encoder.name}"

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """Return the cosine of each text with the query, in input order; raise EncoderError."""
        del timeout_seconds
        return [float(it) for it in self._encoder.encode_documents(texts) @ self._encoder.encode_query(query)]


def _relevance(score: float, kind: ScoreType) -> float:
    """Return a score as 0 to 1: the logistic function of a cross-encoder's raw output, others cut to that range."""
    if kind is ScoreType.LOGIT:
        return 1 / (1 + math.exp(-max(-700.0, min(700.0, score))))
    return min(1.0, max(0.0, score))
