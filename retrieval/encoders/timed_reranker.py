"""A reranker with a time limit for every call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from corecube.scope import AccessScope
from retrieval.encoders.model_calls import RERANKER, ModelCalls, model_key
from retrieval.encoders.reranker import BreakingReranker, HitReranker, Reranker
from retrieval.engine.types import Ranking, ScoreType

#: Lets the reranker's own, more precise timeout come first.
_GRACE_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class TimedReranker:
    """Calls a reranker with a time limit."""

    reranker: Reranker
    calls: ModelCalls
    #: Whether a breaker counts the failures here; False if another one does.
    breaks: bool

    @property
    def name(self) -> str:
        """The model's name, for traces."""
        return self.reranker.name

    @property
    def score_type(self) -> ScoreType:
        """The type of the scores of reranked hits."""
        return self.reranker.score_type

    @property
    def blend_weight(self) -> float | None:
        """The weight of its min-max-normalised scores in the blend; None if its order is final."""
        return self.reranker.blend_weight

    @property
    def problem(self) -> str:
        """Why it cannot be used now, as a sentence; empty if it can."""
        return self.reranker.problem

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """Return one score per text within the time limit; raise RerankError as `Reranker.score` does."""

        def work() -> list[float]:
            return self.reranker.score(query, texts, timeout_seconds=timeout_seconds)

        return self._within(self.calls.within, timeout_seconds, work)

    def _within(
        self, within: Callable[..., list[float]], timeout_seconds: float, work: Callable[[], list[float]]
    ) -> list[float]:
        key = model_key(self.reranker)
        return within(timeout_seconds + _GRACE_SECONDS, work, model=key, faults=RERANKER, breaks=self.breaks)


@dataclass(frozen=True, slots=True)
class TimedHitReranker(TimedReranker):
    """Calls a reranker of stored encodings with a time limit."""

    hit_reranker: HitReranker

    def score_hits(self, query: str, hits: Ranking, *, scope: AccessScope, timeout_seconds: float) -> list[float]:
        """Return one score per hit, in order; raise RerankError as `score` does."""

        def work() -> list[float]:
            return self.hit_reranker.score_hits(query, hits, scope=scope, timeout_seconds=timeout_seconds)

        return self._within(self.calls.reading_within, timeout_seconds, work)


def timed(reranker: Reranker, calls: ModelCalls, *, breaks: bool = True) -> TimedReranker:
    """Return a reranker with a time limit for every call.

    A breaker counts late calls, unless the reranker has one or `breaks` is False: two breakers in a row would count
    different failures.
    """
    breaks = breaks and not isinstance(reranker, BreakingReranker)
    if isinstance(reranker, HitReranker):
        return TimedHitReranker(reranker, calls, breaks, reranker)
    return TimedReranker(reranker, calls, breaks)
