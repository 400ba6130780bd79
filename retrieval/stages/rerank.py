"""Reranking the best of the blend."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.encoders.reranker import MIN_SPAN, HitReranker, Reranker, scores_of
from retrieval.engine.about import About, BaseStage, score_fact
from retrieval.engine.state import DropReason, Note, SearchState, drops_beyond
from retrieval.engine.tunables import Tunables, costly, tunable
from retrieval.engine.types import Hit, Ranking, ScoreType
from retrieval.errors import RerankError
from retrieval.ranking.fusion import min_max
from retrieval.ranking.signals import seated_first


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankConfig(Tunables, label="Reranker"):
    """Input and time of the cross-encoder."""

    candidates: int = costly(
        30, low=1, high=200, unit="hits", help="Number of top blended hits that the reranker scores."
    )
    reserve_ms: int = tunable(
        100, low=0, high=10_000, unit="ms", help="Time reserved for finishing the search after reranking."
    )


@dataclass(frozen=True, slots=True)
class Rerank(BaseStage, name="rerank", needs={"query", "hits", "facts", "order"}, optional=True):
    """Score each of the best hits jointly with the query; without a reranker the blend's order is used."""

    config: RerankConfig
    reranker: Reranker | None
    is_expected: bool = False  #: Whether a search without a reranker is degraded.

    about: ClassVar[About] = About(
        "reranked",
        "Scores the top blended hits with a reranker; without one, the blended order is used.",
        section="rerank",
        drops=(DropReason.RERANK_CUT,),
        window="rerank.candidates",
        notes={
            "rerank_failed": "reranker failed",
            "rerank_timeout": "reranker timed out",
            "rerank_breaker_open": "reranker paused after failures",
            "rerank_none": "no reranker",
        },
        fact=score_fact,
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with its best hits in the reranker's order, followed by others up to the requested number.

        If the reranker fails, the search continues in the blend's order with a note.
        """
        if self.reranker is None:
            text = "No reranker is configured; the blended order is used."
            return state.noted(Note("rerank_none", text, degraded=self.is_expected))
        seen, unseen = state.hits[: self.config.candidates], state.hits[self.config.candidates :]
        if not seen:
            return state
        query = state.query.for_models
        # The legs' time, not the entire deadline, so that the stages behind it still have time.
        seconds = state.deadline.leg_seconds - self.config.reserve_ms / 1000
        try:
            scores = scores_of(
                self.reranker,
                query,
                seen,
                scope=state.scope,
                timeout_seconds=seconds,
                read=state.prefetch.get(self.name),
            )
        except RerankError as error:
            return state.noted(Note(error.code, f"{error} The blend's order is used.", degraded=True))
        wanted = max(0, state.top_k - len(seen))
        hits = (*reranked(seen, scores, self.reranker.score_type, self.reranker.blend_weight), *unseen[:wanted])
        drops = drops_beyond(state.hits, len(hits), DropReason.RERANK_CUT, "blend rank {rank}, window {limit}")
        state = replace(state, hits=hits, drops=(*state.drops, *drops))
        return state.noted(Note("reranked", f"{self.reranker.name} scored the best {len(seen)} hits."))


@dataclass(frozen=True, slots=True)
class PrefetchQuery:
    """Makes what a reranker compares of the query while the query is embedded, which leaves a CPU core free."""

    reranker: HitReranker
    executor: Executor

    def begun(self, state: SearchState) -> SearchState:
        """Return the state while another thread reads the query."""
        reading = self.executor.submit(self.reranker.read, state.query.for_models)
        return replace(state, prefetch={**state.prefetch, Rerank.name: reading.result})


def reading_ahead(reranker: Reranker | None, executor: Executor) -> tuple[PrefetchQuery, ...]:
    """Return what reads the query ahead for a reranker of stored encodings; nothing for others."""
    return (PrefetchQuery(reranker, executor),) if isinstance(reranker, HitReranker) else ()


def reranked(hits: Ranking, scores: Sequence[float], score_type: ScoreType, blend_weight: float | None) -> Ranking:
    """Return the blended hits with the reranker's scores, best first; reserved slots rank first, ties by chunk id.

    Without a weight the score replaces the blend's. With one it is min-max-normalised over the hits, over at least
    `MIN_SPAN`, multiplied by the weight and added to the blend's. The raw score and the blend's become signals.
    """
    if blend_weight is None:
        found = [_scored(hit, raw, raw, score_type, {"rerank": raw}) for hit, raw in zip(hits, scores, strict=True)]
    else:
        added = [blend_weight * share for share in min_max(scores, min_span=MIN_SPAN)]
        found = [
            _scored(hit, raw, hit.score + part, score_type, {**hit.contributions, "rerank": part})
            for hit, raw, part in zip(hits, scores, added, strict=True)
        ]
    return tuple(sorted(found, key=seated_first))


def _scored(hit: Hit, raw: float, score: float, score_type: ScoreType, contributions: Mapping[str, float]) -> Hit:
    signals = {**hit.signals, "blend": hit.score, "rerank": raw}
    return hit.with_signals(signals).scored(score, score_type, contributions)
