"""Context packs: the selected chunks with their citations, the text, and the trace of the selection. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from retrieval.engine.state import SearchState
from retrieval.engine.types import PRIMARY, ChunkFacts, ChunkId, Passage, Ranking
from retrieval.index.types import Relation
from retrieval.presets.contextpack.judge import RubricScores
from retrieval.presets.contextpack.packing import BREAK, PACK_COUNTED, counted, items
from retrieval.presets.contextpack.stages.judge_relevance import JudgeRelevance
from retrieval.presets.contextpack.stages.neighbours import FoundNeighbours
from retrieval.text.document import row_unit

_NOTHING: Final = "n/a"
_SPANS: Final = {"row": "Rows", "record": "Items", "line": "Lines"}


def citations(hits: Ranking, *, by_id: bool = False) -> tuple[str, ...]:
    """Return a line for each hit: `by_id` with its document's id, else with the title, and the id if it is shared."""
    if by_id:
        return tuple(citation(replace(hit.chunk, title=str(hit.chunk_id.document_id))) for hit in hits)
    documents = defaultdict(set)
    for hit in hits:
        documents[_plain(hit.chunk.title)].add(hit.chunk_id.document_id)
    shared = {title for title, ids in documents.items() if len(ids) > 1}
    return tuple(
        citation(hit.chunk, document=str(hit.chunk_id.document_id) if _plain(hit.chunk.title) in shared else "")
        for hit in hits
    )


def citation(chunk: ChunkFacts, *, document: str = "") -> str:
    """Return "Doc: Travel policy | Page: 3-4 | Section: Rail > Seats | Rows: 12-40", with "Id: …" for `document`.

    Document, page and section are always present, as "n/a" without a value; rows, items or lines only where the source
    counts them.
    """
    parts = {"Doc": _plain(chunk.title) or _NOTHING}
    if document:
        parts["Id"] = document
    parts["Page"] = _span(chunk.page_start, chunk.page_end) or _NOTHING
    parts["Section"] = " > ".join(map(_plain, chunk.heading_path)) or _NOTHING
    if rows := _span(chunk.row_start, chunk.row_end):
        parts[_SPANS[row_unit(chunk.source_type)]] = rows
    return " | ".join(f"{name}: {value}" for name, value in parts.items())


def _span(first: int | None, last: int | None) -> str:
    if first is None:
        return ""
    return f"{first}" if last in {None, first} else f"{first}-{last}"


def _plain(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedChunk:
    """A chunk of a pack."""

    number: int  #: The N of [N] above its text.
    chunk_id: ChunkId
    role: str  #: primary, parent, sibling or cross_page.
    facts: ChunkFacts
    token_count: int
    score: float | None = None  #: On the rubric's scale, 0 to 100; None for a neighbour of a primary hit.
    citation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateTrace:
    """A candidate before scoring."""

    chunk_id: ChunkId
    rank: int  #: Place in the blend, in the reference by cosine, from 1, and its score there.
    score: float
    ranks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankResult:
    """A candidate after reranking."""

    chunk_id: ChunkId
    #: 0 to 100 by the rubric; another reranker's score, or the blend's, on that scale where `is_judged` is not set.
    relevance_score: float
    answerability: bool | None = None  #: None if no language model scored it.
    key_evidence: str = ""
    is_judged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PackTrace:
    """The trace of a pack."""

    candidates: tuple[CandidateTrace, ...]
    rerank_results: tuple[RerankResult, ...]
    final_token_count: int  #: The sum of the chunks' tokens; the context has no more.
    budget_tokens: int
    #: The model whose tokenizer counted: the answering model, or the embedding model; empty if nothing was counted.
    tokenizer: str
    #: Found and packed chunks by role: {"parent": {"found": 12, "packed": 9}}.
    expansion: Mapping[str, Mapping[str, int]]
    #: Codes of what fell back or was cut short; "pack_over_budget" where the best hits alone exceed the budget.
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPack:
    """The context for a question."""

    query: str
    selected_chunks: tuple[SelectedChunk, ...]  #: In reading order, as `context_pack` has them.
    citations: tuple[str, ...]  #: One line for each selected chunk, in the same order.
    trace: PackTrace
    context_pack: str


def context_pack_of(state: SearchState, *, top: int, budget_tokens: int, cite_ids: bool = False) -> ContextPack:
    """Return the pack of a finished search with at most `top` primary hits."""
    lines = citations(tuple(it.hit for it in state.passages), by_id=cite_ids)
    selected = tuple(map(_selected, state.passages, lines))
    hits = state.hits if state.access_checked else ()
    # The ranking that the scoring stage was given; none where the time was up before it.
    stages = [span.stage for span in state.trace]
    place = stages.index(JudgeRelevance.name) if JudgeRelevance.name in stages else 0
    before = state.trace[place - 1].left if place and state.access_checked else ()
    candidates = tuple(
        CandidateTrace(chunk_id=hit.chunk_id, rank=rank, score=hit.score, ranks=hit.ranks)
        for rank, hit in enumerate(before, start=1)
    )
    around = state.part(FoundNeighbours) or FoundNeighbours()
    found = counted(items(hits[: min(top, state.top_k)], around.neighbours))
    expansion = {
        str(role): {"found": found[role], "packed": sum(it.role == role for it in state.passages)}
        for role in (PRIMARY, *Relation)
    }
    return ContextPack(
        query=state.query.text,
        selected_chunks=selected,
        citations=lines,
        trace=PackTrace(
            candidates=candidates,
            rerank_results=tuple(_results(state)),
            final_token_count=sum(it.token_count for it in selected),
            budget_tokens=budget_tokens,
            tokenizer=next((str(it["tokenizer"]) for it in state.events if it["event"] == PACK_COUNTED), ""),
            expansion=expansion,
            degraded=state.degraded,
        ),
        context_pack=BREAK.join(f"{it.header}\n{it.hit.chunk.text}" for it in state.passages),
    )


def _selected(passage: Passage, line: str) -> SelectedChunk:
    return SelectedChunk(
        number=passage.number,
        chunk_id=passage.hit.chunk_id,
        role=passage.role,
        facts=passage.hit.chunk,
        token_count=passage.token_count,
        score=passage.score,
        citation=line,
    )


def _results(state: SearchState) -> Iterator[RerankResult]:
    judgments = state.part(RubricScores) or RubricScores()
    for hit in judgments.candidates:
        if judged := judgments.relevance.get(hit.chunk_id):
            yield RerankResult(
                chunk_id=hit.chunk_id,
                relevance_score=judged.score,
                answerability=judged.is_answering,
                key_evidence=judged.evidence,
                is_judged=True,
            )
        else:
            yield RerankResult(chunk_id=hit.chunk_id, relevance_score=hit.score)
