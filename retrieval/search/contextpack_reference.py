"""`contextpack@reference` from Python, as its document calls it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from corecube.access import Principal, ScopeRequest
from corecube.errors import NotPermittedError
from retrieval.engine.tunables import diff
from retrieval.presets.catalog import preset_named
from retrieval.presets.contextpack.config import ContextPackConfig
from retrieval.presets.contextpack.judge import RelevanceConfig
from retrieval.presets.contextpack.pack import ContextPack, SelectedChunk
from retrieval.search.context_packs import Filters, conditions_of, retrieved
from retrieval.search.request import SearchRequest

PRESET: Final = "contextpack@reference"


@dataclass(frozen=True, slots=True)
class ReferencePack:
    """The context for a question, in the document's lists and dictionaries."""

    query: str
    selected_chunks: list[dict[str, Any]]  #: In reading order.
    citations: list[str]  #: One line for each selected chunk, in the same order.
    trace: dict[str, Any]
    context_pack: str


def retrieve(  # noqa: PLR0913 -- the document's signature
    query: str,
    filters: Filters | None = None,
    cfg: ContextPackConfig | None = None,
    all_chunks: Sequence[object] = (),  # noqa: ARG001 -- chunks are read from the index
    llm_config: RelevanceConfig | None = None,
    *,
    principal: Principal | None = None,
    narrowing: ScopeRequest | None = None,
) -> ReferencePack:
    """Return the pack for a query, from what `principal` may see and the filters allow.

    It is a search like any other: the scope of the principal applies, and nobody may see anything without one.
    `all_chunks` is not read, since a text from outside the index has no compartment; neighbours come from the index.
    `cfg` replaces the reference's settings for this request; those that cost time can only be lowered, the budget
    also raised up to CORECUBE_MAX_CONTEXT_TOKENS. `llm_config` replaces `cfg.relevance`, the document's RerankConfig.
    Raises NotPermittedError without a principal, and what `search` raises.
    """
    if principal is None:
        raise NotPermittedError("A context pack needs a principal, whose access applies.")
    reference = preset_named(PRESET).defaults
    assert isinstance(reference, ContextPackConfig)  # noqa: S101 -- the preset's own
    config = cfg or reference
    if llm_config is not None:
        config = replace(config, relevance=llm_config)
    request = SearchRequest(
        text=query,
        preset=PRESET,
        narrowing=narrowing or ScopeRequest(),
        conditions=conditions_of(filters or {}),
        overrides={change.name: change.after for change in diff(reference, config)},
        judge_model=config.relevance.model,
    )
    pack, _ = retrieved(request, principal=principal)
    return reference_pack(pack)


def reference_pack(pack: ContextPack) -> ReferencePack:
    """Return a pack in the document's form; the trace has its names beside ours."""
    candidates = [asdict(it) | {"chunk_id": str(it.chunk_id)} for it in pack.trace.candidates]
    expansion = {role: dict(counts) for role, counts in pack.trace.expansion.items()}
    trace = {
        "candidates": candidates,
        "pinecone_candidates": candidates,
        "rerank_results": [asdict(it) | {"chunk_id": str(it.chunk_id)} for it in pack.trace.rerank_results],
        "final_token_count": pack.trace.final_token_count,
        "budget_tokens": pack.trace.budget_tokens,
        "tokenizer": pack.trace.tokenizer,
        "expansion": expansion,
        "expansion_stats": expansion,
        "degraded": list(pack.trace.degraded),
    }
    selected = [_selected(it) for it in pack.selected_chunks]
    return ReferencePack(pack.query, selected, list(pack.citations), trace, pack.context_pack)


def _selected(it: SelectedChunk) -> dict[str, Any]:
    return {
        "number": it.number,
        "chunk_id": str(it.chunk_id),
        "doc_id": str(it.chunk_id.document_id),
        "role": it.role,
        "title": it.facts.title,
        "section": list(it.facts.heading_path),
        "page_start": it.facts.page_start,
        "page_end": it.facts.page_end,
        "text": it.facts.text,
        "token_count": it.token_count,
        "relevance_score": it.score,
        "citation": it.citation,
    }
