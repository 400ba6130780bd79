"""Making a context pack of a finished search. Pure."""

from collections.abc import Iterator, Mapping

from retrieval.engine.state import SearchState
from retrieval.engine.types import PRIMARY, Passage, Ranking
from retrieval.index.types import Relation
from retrieval.presets.contextpack.citations import citations
from retrieval.presets.contextpack.pack import CandidateTrace, ContextPack, PackTrace, RerankResult, SelectedChunk
from retrieval.presets.contextpack.packing import BREAK, PACK_COUNTED, counted, items
from retrieval.presets.contextpack.stages.judge_relevance import JudgeRelevance
from retrieval.presets.contextpack.types import Judgments, Surroundings


def context_pack_of(state: SearchState, *, top: int, budget_tokens: int) -> ContextPack:
    """Return the pack of a finished search; `top` is how many primary hits its preset packs at the most."""
    lines = citations(tuple(it.hit for it in state.passages))
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
            expansion=_expansion(hits[: min(top, state.top_k)], state),
            degraded=state.degraded,
        ),
        context_pack=context_text(state.passages),
    )


def context_text(passages: tuple[Passage, ...]) -> str:
    """Return the passages as a reader gets them: each under its header, a blank line between two."""
    return BREAK.join(f"{passage.header}\n{passage.hit.chunk.text}" for passage in passages)


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
    """Yield every candidate, also those that were judged and not packed."""
    judgments = state.part(Judgments) or Judgments()
    for hit in judgments.candidates:
        judged = judgments.relevance.get(hit.chunk_id)
        if judged is not None:
            yield RerankResult(
                chunk_id=hit.chunk_id,
                relevance_score=judged.score,
                answerability=judged.is_answering,
                key_evidence=judged.evidence,
                is_judged=True,
            )
        else:
            yield RerankResult(chunk_id=hit.chunk_id, relevance_score=hit.score)


def _expansion(primaries: Ranking, state: SearchState) -> Mapping[str, Mapping[str, int]]:
    """Return how many chunks each role had, each counted once for its strongest, and how many of them were packed."""
    around = state.part(Surroundings) or Surroundings()
    found = counted(items(primaries, around.neighbours))
    packed = {role: sum(passage.role == role for passage in state.passages) for role in (PRIMARY, *Relation)}
    return {str(role): {"found": found[role], "packed": packed[role]} for role in (PRIMARY, *Relation)}
