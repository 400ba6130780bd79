"""POST /api/v1/context-pack."""

from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel, Field

from corecube.api import principal_of
from corecube.scope import AccessScope
from retrieval.api import schemas, shape
from retrieval.api.dify import FiltersIn, conditions_of
from retrieval.api.search import scope_request
from retrieval.models import SearchRecord
from retrieval.presets.contextpack.pack import PackTrace, SelectedChunk
from retrieval.search.context_packs import PRESET, retrieved
from retrieval.search.request import SearchRequest

router = Router(tags=["search"])


class ContextPackIn(schemas.StrictBody):
    """A query to retrieve a context for."""

    query: str = Field(description="The query; the first 500 characters are read.")
    preset: str = Field(default=PRESET, max_length=40, description="This preset or its reference version.")
    filters: FiltersIn | None = Field(default=None, description="Conditions that document metadata must meet.")
    scope: schemas.ScopeIn = Field(default_factory=schemas.ScopeIn)
    top_k: schemas.TopK | None = Field(
        default=None, description="Number of primary hits; default: the preset's number."
    )
    overrides: schemas.Overrides = Field(default_factory=dict)
    draft: bool = Field(default=False, description="For admins: runs with the preset's draft.")


class SelectedChunkOut(BaseModel):
    """A chunk of the context."""

    number: int = Field(description="The N of [N] above its text; the budget drops high numbers first.")
    chunk_id: str
    document_id: UUID
    role: str = Field(description="primary, parent, sibling or cross_page.")
    title: str
    heading_path: list[str]
    text: str
    url: str = Field(description="The chunk on its document's page.")
    source: schemas.Source
    source_type: str
    pages: schemas.Pages | None
    rows: schemas.Rows | None
    token_count: int
    relevance_score: float | None = Field(description="0 to 100; null for chunks around a primary hit.")
    citation: str


class CandidateOut(BaseModel):
    """A candidate before reranking."""

    chunk_id: str
    rank: int
    score: float = Field(
        description="The blend of vectors, full text and freshness; the cosine in the reference version."
    )
    ranks: dict[str, int] = Field(description="Ranks, from 1, in the rankings that found it.")


class RerankResultOut(BaseModel):
    """A candidate after reranking."""

    chunk_id: str
    relevance_score: float = Field(description="0 to 100.")
    answerability: bool | None = Field(description="Whether it answers the query; null if no model judged it.")
    key_evidence: str
    judged: bool = Field(description="Whether a language model judged it; if not, another score on the same scale.")


class ExpansionOut(BaseModel):
    """Chunks of one role."""

    found: int
    packed: int


class PackTraceOut(BaseModel):
    """How the context was built."""

    candidates: list[CandidateOut]
    rerank_results: list[RerankResultOut] = Field(description="Best first.")
    final_token_count: int
    budget_tokens: int = Field(description="Exceeded only with `pack_over_budget` in `degraded`.")
    tokenizer: str = Field(description="The model of the token counts: the language model or the embedding model.")
    expansion_stats: dict[str, ExpansionOut] = Field(description="By role.")
    pinecone_candidates: list[CandidateOut] | None = Field(
        default=None, description="The candidates under the reference's name; null for the tuned preset."
    )


class ContextPackOut(BaseModel):
    """A context for a query, with its citations and its trace."""

    query: str
    selected_chunks: list[SelectedChunkOut] = Field(description="In reading order.")
    citations: Annotated[list[str], Field(description="A line for each selected chunk, in the same order.")]
    trace: PackTraceOut
    context_pack: str
    trace_id: UUID
    preset_version: str = Field(description="Fingerprint of the stages and all settings.")
    answerability: schemas.AnswerabilityOut | None = Field(description="None if the deadline passed first.")
    degraded: list[str] = Field(description="Codes of fallbacks and early stops.")
    timings: schemas.Timings


@router.post("/context-pack", response={200: ContextPackOut, **schemas.REFUSALS}, summary="Retrieve a context")
def retrieve_context(request: HttpRequest, body: ContextPackIn) -> ContextPackOut:
    """Find the chunks that answer a query, add surrounding chunks, and pack them into a token budget."""
    pack, outcome = retrieved(
        SearchRequest(
            text=body.query,
            preset=body.preset,
            narrowing=scope_request(body.scope),
            conditions=conditions_of(body.filters),
            overrides=body.overrides,
            draft=body.draft,
            surface=SearchRecord.Surface.API,
        ),
        principal=principal_of(request),
        top_k=body.top_k,
    )
    return schemas.filled(
        ContextPackOut,
        pack,
        selected_chunks=[_selected(it, outcome.state.scope, request.build_absolute_uri) for it in pack.selected_chunks],
        trace=_trace(pack.trace, is_reference=bool(outcome.preset.lines)),
        trace_id=outcome.id,
        preset_version=outcome.preset_version,
        answerability=shape.answerability(outcome, with_signals=False),
        degraded=list(outcome.state.degraded),
        timings=shape.timings(outcome),
    )


def _selected(it: SelectedChunk, scope: AccessScope, absolute: shape.Absolute) -> SelectedChunkOut:
    chunk = it.facts
    return schemas.filled(
        SelectedChunkOut,
        it,
        chunk_id=str(it.chunk_id),
        document_id=it.chunk_id.document_id,
        title=chunk.title,
        heading_path=list(chunk.heading_path),
        text=chunk.text,
        url=absolute(shape.document_path(*it.chunk_id)),
        # Raises for a connection outside the scope, so that such a chunk fails the request and is not shown.
        source=shape.source(scope.inclusion(chunk.connection_id).connection),
        source_type=chunk.source_type,
        pages=shape.pages(chunk.page_start, chunk.page_end),
        rows=shape.rows(chunk.row_start, chunk.row_end, chunk.source_type),
        relevance_score=it.score,
    )


def _trace(trace: PackTrace, *, is_reference: bool) -> PackTraceOut:
    candidates = [schemas.filled(CandidateOut, it, chunk_id=str(it.chunk_id)) for it in trace.candidates]
    return schemas.filled(
        PackTraceOut,
        trace,
        candidates=candidates,
        pinecone_candidates=candidates if is_reference else None,
        rerank_results=[
            schemas.filled(RerankResultOut, it, chunk_id=str(it.chunk_id), judged=it.is_judged)
            for it in trace.rerank_results
        ],
        expansion_stats={role: ExpansionOut.model_validate(dict(counts)) for role, counts in trace.expansion.items()},
    )
