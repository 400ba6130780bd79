"""Reranking a section's pool by a cross-encoder, or by SemanticBM25."""

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from retrieval.encoders.reranker import MIN_FAILURE_SECONDS, Reranker
from retrieval.engine.about import About, BaseStage
from retrieval.engine.state import Note, SearchState
from retrieval.errors import RerankBreakerOpenError, RerankError, RerankTimeoutError
from retrieval.presets.consolidated.evidence.rerank_guard import RerankFigures, RerankGuard
from retrieval.presets.consolidated.evidence.scoring import (
    Provider,
    RerankCall,
    RerankPlan,
    RerankPlanConfig,
    RerankSkip,
    SemanticBm25Config,
    merged_scores,
    plan_rerank,
    reranked,
    semantic_bm25,
)
from retrieval.stages.rerank import Rerank

_FALLBACK: Final = "SemanticBM25 scored the pool."
_SKIP_NOTES: Final[Mapping[RerankSkip, tuple[str, str]]] = {
    RerankSkip.CIRCUIT_BREAKER: ("rerank_breaker_open", "The cross-encoder failed several times and is paused."),
    RerankSkip.BUDGET: ("rerank_budget", "Too little time was left for the cross-encoder to finish."),
}


@dataclass(frozen=True, slots=True)
class CrossEncoding:
    """A cross-encoder with its guard and the executor of its batches."""

    reranker: Reranker
    guard: RerankGuard
    executor: Executor


@dataclass(frozen=True, slots=True)
class RerankSection(BaseStage, name="rerank", needs={"query", "hits", "facts", "section"}, gives={"order"}):
    """Score the pool by the cross-encoder, or by SemanticBM25 if that is skipped or fails."""

    plan: RerankPlanConfig
    fallback: SemanticBm25Config
    cross: CrossEncoding | None  #: None where no cross-encoder is configured.
    figures: RerankFigures
    is_expected: bool = False  #: Whether a search without a cross-encoder is degraded.

    about: ClassVar[About] = replace(
        Rerank.about,
        purpose="Scores the pool with a cross-encoder; without one, or if it fails, with SemanticBM25.",
        drops=(),
        notes={**Rerank.about.notes, "rerank_budget": "no time for the reranker", "rerank_partial": "reranked in part"},
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state ordered by score, each hit with its provider.

        The search continues if the cross-encoder fails. Each hit is scored by only one of the two.
        """
        if not state.hits:
            return state
        if self.cross is None:
            note = Note("rerank_none", f"No reranker is configured. {_FALLBACK}", degraded=self.is_expected)
            return self._by_fallback(state, note)
        guard = self.cross.guard
        plan = plan_rerank(
            len(state.hits),
            remaining_ms=1000 * state.deadline.leg_seconds,
            admits=guard.breaker.admits,
            chunk_ms=guard.chunk_time.ms,
            config=self.plan,
        )
        if plan.skip is not None:
            return self._without(self.cross, state, plan, plan.skip)
        try:
            scored = _scores_of(self.cross, state, plan)
        except RerankBreakerOpenError as error:
            return self._without(self.cross, state, plan, RerankSkip.CIRCUIT_BREAKER, error)
        except RerankError as error:
            return self._without(self.cross, state, plan, RerankSkip.API_ERROR, error)
        return self._by_cross_encoder(self.cross, state, plan, scored)

    def _by_cross_encoder(
        self, cross: CrossEncoding, state: SearchState, plan: RerankPlan, scored: tuple[Mapping[int, float], int, float]
    ) -> SearchState:
        scores, failed_batches, seconds = scored
        reranker, guard = cross.reranker, cross.guard
        hits = reranked(state.hits, scores, reranker.score_type, blend_weight=reranker.blend_weight)
        self.figures.scored(Provider.CROSS_ENCODER)
        notes = [Note("reranked", f"{reranker.name} scored {len(scores)} of {len(hits)} hits.")]
        if failed_batches:
            text = f"{failed_batches} of {len(plan.batches)} batches failed; their hits rank last."
            notes.append(Note("rerank_partial", text, degraded=True))
        event = {
            "event": "reranked",
            "provider": str(Provider.CROSS_ENCODER),
            "reranker": reranker.name,
            "chunks": len(hits),
            "scored": len(scores),
            "batches": len(plan.batches),
            "failed_batches": failed_batches,
            "ms": round(1000 * seconds, 1),
            "chunk_ms": round(guard.chunk_time.ms, 2),
            "breaker": str(guard.breaker.state),
        }
        return replace(state, hits=hits, notes=(*state.notes, *notes), events=(*state.events, event))

    def _without(
        self,
        cross: CrossEncoding,
        state: SearchState,
        plan: RerankPlan,
        reason: RerankSkip,
        error: RerankError | None = None,
    ) -> SearchState:
        remaining_ms = 1000 * state.deadline.leg_seconds
        if reason is RerankSkip.BUDGET:
            cross.guard.chunk_time.skipped()
        self.figures.skipped(reason)
        code, text = _SKIP_NOTES.get(reason) or (error.code if error else reason.value, str(error or ""))
        event = {
            "event": "cross_encoder_skipped",
            "reason": str(reason),
            "reranker": cross.reranker.name,
            "chunks": len(state.hits),
            "remaining_ms": round(remaining_ms, 1),
            "floor_ms": round(plan.floor_ms, 1),
            "chunk_ms": round(cross.guard.chunk_time.ms, 2),
            "breaker": str(cross.guard.breaker.state),
            "error": error.code if error else "",
        }
        state = replace(state, events=(*state.events, event))
        return self._by_fallback(state, Note(code, f"{text} {_FALLBACK}", degraded=True))

    def _by_fallback(self, state: SearchState, note: Note) -> SearchState:
        clock = state.deadline.clock
        started = clock()
        # BM25, or full text, which every hit has, if no hit has a BM25 score.
        has_bm25 = any(hit.signals.get("bm25", 0.0) > 0 for hit in state.hits)
        has_fulltext = any(hit.signals.get("fulltext", 0.0) > 0 for hit in state.hits)
        lexical = "fulltext" if has_fulltext and not has_bm25 else "bm25"
        hits = semantic_bm25(state.hits, self.fallback, lexical=lexical)
        self.figures.scored(Provider.SEMANTIC_BM25)
        event = {
            "event": "reranked",
            "provider": str(Provider.SEMANTIC_BM25),
            "chunks": len(hits),
            "lexical": lexical,
            "ms": round(1000 * (clock() - started), 1),
        }
        return replace(state, hits=hits, notes=(*state.notes, note), events=(*state.events, event))


def _scores_of(cross: CrossEncoding, state: SearchState, plan: RerankPlan) -> tuple[Mapping[int, float], int, float]:
    """Return the scores of the batches that succeeded, the number of failed ones and the seconds.

    Raises RerankError if none succeeded.
    Informs the breaker, and updates the measured time per chunk.
    """
    deadline = state.deadline
    started, granted = deadline.clock(), deadline.leg_seconds
    query = state.query.for_models
    call = RerankCall(cross.reranker, query, state.scope, deadline)
    # A request that shortens its deadline must not open the breaker for everybody.
    is_short = granted < MIN_FAILURE_SECONDS

    def work() -> tuple[Mapping[int, float], int, float]:
        outcomes = call.outcomes(state.hits, plan.batches, cross.executor)
        errors, seconds = [it for _, it in outcomes if isinstance(it, Exception)], deadline.clock() - started
        is_late = any(isinstance(it, RerankTimeoutError) for it in errors)
        if is_late:
            cross.guard.chunk_time.timed_out(len(state.hits), seconds, is_short=is_short)
        scores = merged_scores(outcomes)
        if not is_late:
            cross.guard.chunk_time.measured(len(scores), seconds)
        return scores, len(errors), seconds

    excused = (RerankBreakerOpenError, *((RerankTimeoutError,) if is_short else ()))
    return cross.guard.breaker.call(work, excused=excused)
