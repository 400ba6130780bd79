"""Reranking by late interaction with token vectors that were stored at ingest."""

from collections.abc import Sequence
from time import perf_counter
from typing import Final

from corecube.errors import DatabaseUnavailableError
from corecube.scope import AccessScope
from retrieval.encoders.encodings import key_of
from retrieval.encoders.late_encoder import LateEncoder
from retrieval.encoders.late_interaction import TokenVectors
from retrieval.encoders.reranker import TimeBox
from retrieval.engine.types import ChunkId, Ranking, ScoreType
from retrieval.errors import EncoderError, RerankError, RerankTimeoutError, SearchTimeoutError
from retrieval.index.tokens import token_vectors_of
from retrieval.text.document import in_context

#: Beside a blend that reaches 1.
_WEIGHT: Final = 0.5


class StoredInteraction:
    """Adds to a ranking how well each token of the query is met by some token of the text, as it was stored.

    A text without stored vectors is encoded during the search, within its time limit.
    """

    score_type = ScoreType.MAXSIM
    blend_weight: float | None = _WEIGHT
    problem = ""

    def __init__(self, encoder: LateEncoder) -> None:
        self._encoder = encoder
        self._key = key_of(encoder)

    @property
    def name(self) -> str:
        """The model's name, and what is done with it."""
        return f"stored late interaction of {self._encoder.name}"

    def score_hits(self, query: str, hits: Ranking, *, scope: AccessScope, timeout_seconds: float) -> list[float]:
        """Return the mean best cosine of the query's tokens with each hit's, -1 to 1, in order.

        Raises RerankTimeoutError when it would end too late, RerankError if the model fails.
        """
        until = perf_counter() + timeout_seconds
        try:
            query_vectors = self._encoder.query_vectors(query)
            stored = token_vectors_of(
                hits,
                model_key=self._key,
                dim=self._encoder.dim,
                scope=scope,
                timeout_seconds=max(0.001, until - perf_counter()),
            )
            missing = tuple(hit for hit in hits if hit.chunk_id not in stored)
            stored |= self._made(missing, TimeBox(until - perf_counter()))
        except SearchTimeoutError as error:
            raise RerankTimeoutError from error
        except (EncoderError, DatabaseUnavailableError, ValueError) as error:
            raise RerankError(f"The token vectors of {self._encoder.name!r} cannot be had.") from error
        return [stored[hit.chunk_id].max_sim(query_vectors) for hit in hits]

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """Return the same for texts that are not stored."""
        box = TimeBox(timeout_seconds)
        try:
            query_vectors = self._encoder.query_vectors(query)
            return [vectors.max_sim(query_vectors) for vectors in self._encoded(texts, box)]
        except EncoderError as error:
            raise RerankError(f"The model {self._encoder.name!r} failed.") from error

    def _made(self, hits: Ranking, box: TimeBox) -> dict[ChunkId, TokenVectors]:
        texts = [in_context(it.chunk.title, it.chunk.heading_path, it.chunk.text) for it in hits]
        return {hit.chunk_id: made for hit, made in zip(hits, self._encoded(texts, box), strict=True)}

    def _encoded(self, texts: Sequence[str], box: TimeBox) -> list[TokenVectors]:
        step = self._encoder.threads
        made: list[TokenVectors] = []
        for start in range(0, len(texts), step):
            some = texts[start : start + step]
            vectors = box.run(lambda some=some: self._encoder.document_vectors(some))  # type: ignore[misc]  # a default binds the loop's variable
            made += map(TokenVectors.of, vectors)
        return made
