"""POST /api/v1/context-pack."""

from django.http import HttpRequest
from ninja import Router

from corecube.api import principal_of
from corecube.scope import AccessScope
from retrieval.api import context_pack_schemas as out
from retrieval.api import schemas, shape
from retrieval.api.dify_schemas import conditions_of
from retrieval.api.search import scope_request
from retrieval.models import SearchRecord
from retrieval.presets.contextpack.pack import PackTrace, SelectedChunk
from retrieval.search.context_packs import Retrieved, retrieved
from retrieval.search.request import SearchRequest

router = Router(tags=["search"])


@router.post("/context-pack", response={200: out.ContextPackOut, **schemas.REFUSALS}, summary="Retrieve a context")
def retrieve_context(request: HttpRequest, body: out.ContextPackIn) -> out.ContextPackOut:
    """Find the chunks that answer a query, take in what stands around them, and pack them into a budget of tokens."""
    found = retrieved(
        SearchRequest(
            text=body.query,
            narrowing=scope_request(body.scope),
            conditions=conditions_of(body.filters),
            overrides=body.overrides,
            draft=body.draft,
            surface=SearchRecord.Surface.API,
        ),
        principal=principal_of(request),
        top_k=body.top_k,
    )
    return _answer(found, request.build_absolute_uri)


def _answer(found: Retrieved, absolute: shape.Absolute) -> out.ContextPackOut:
    pack, outcome = found.pack, found.outcome
    return out.ContextPackOut(
        query=pack.query,
        selected_chunks=[_selected(it, outcome.state.scope, absolute) for it in pack.selected_chunks],
        citations=list(pack.citations),
        trace=_trace(pack.trace),
        context_pack=pack.context_pack,
        trace_id=outcome.id,
        preset_version=outcome.preset_version,
        answerability=shape.answerability(outcome, with_signals=False),
        degraded=list(outcome.state.degraded),
        timings=shape.timings(outcome),
    )


def _selected(it: SelectedChunk, scope: AccessScope, absolute: shape.Absolute) -> out.SelectedChunkOut:
    chunk = it.facts
    return out.SelectedChunkOut(
        number=it.number,
        chunk_id=str(it.chunk_id),
        document_id=it.chunk_id.document_id,
        role=it.role,
        title=chunk.title,
        heading_path=list(chunk.heading_path),
        text=chunk.text,
        url=absolute(shape.document_path(*it.chunk_id)),
        # Raises for a connection out of scope, so that such a chunk ends the request and is not shown.
        source=shape.source(scope.inclusion(chunk.connection_id).connection),
        source_type=chunk.source_type,
        pages=shape.pages(chunk.page_start, chunk.page_end),
        rows=shape.rows(chunk.row_start, chunk.row_end, chunk.source_type),
        token_count=it.token_count,
        relevance_score=it.score,
        citation=it.citation,
    )


def _trace(trace: PackTrace) -> out.PackTraceOut:
    return out.PackTraceOut(
        candidates=[
            out.CandidateOut(chunk_id=str(it.chunk_id), rank=it.rank, score=it.score, ranks=dict(it.ranks))
            for it in trace.candidates
        ],
        rerank_results=[
            out.RerankResultOut(
                chunk_id=str(it.chunk_id),
                relevance_score=it.relevance_score,
                answerability=it.answerability,
                key_evidence=it.key_evidence,
                judged=it.is_judged,
            )
            for it in trace.rerank_results
        ],
        final_token_count=trace.final_token_count,
        budget_tokens=trace.budget_tokens,
        tokenizer=trace.tokenizer,
        expansion_stats={
            role: out.ExpansionOut(found=counts["found"], packed=counts["packed"])
            for role, counts in trace.expansion.items()
        },
    )
