"""A reranker that ends in time for its caller, whatever the one behind it does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from corecube.scope import AccessScope
from retrieval.encoders.model_calls import RERANKER, ModelCalls, model_key
from retrieval.encoders.reranker import BreakingReranker, HitReranker, Reranker
from retrieval.engine.types import Ranking, ScoreType

#: A reranker that keeps its time by itself says more of what went wrong, so it goes first.
_GRACE_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class TimedReranker:
    """Asks a reranker, and gives it up when its time is over."""

    reranker: Reranker
    calls: ModelCalls
    #: Whether a breaker counts its failures here; False where another one does.
    breaks: bool

    @property
    def name(self) -> str:
        """The model's name, for traces."""
        return self.reranker.name

    @property
    def score_type(self) -> ScoreType:
        """What the scores of reranked hits mean."""
        return self.reranker.score_type

    @property
    def blend_weight(self) -> float | None:
        """What its scores, min-max-normalised, weigh beside the blend's; None where its order is final."""
        return self.reranker.blend_weight

    @property
    def problem(self) -> str:
        """A sentence on why it cannot be used right now; empty while nothing is known against it."""
        return self.reranker.problem

    def score(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        """Return one score per text; raise RerankError as `Reranker.score` does, at the latest when the time is up."""

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
    """The same for a reranker that reads what the store has of the hits."""

    hit_reranker: HitReranker

    def score_hits(self, query: str, hits: Ranking, *, scope: AccessScope, timeout_seconds: float) -> list[float]:
        """Return one score per hit, in order; raise RerankError as `score` does."""

        def work() -> list[float]:
            return self.hit_reranker.score_hits(query, hits, scope=scope, timeout_seconds=timeout_seconds)

        return self._within(self.calls.reading_within, timeout_seconds, work)


def timed(reranker: Reranker, calls: ModelCalls, *, breaks: bool = True) -> TimedReranker:
    """Return a reranker whose every call ends in time.

    It is left alone after several late calls, unless it does that by itself or `breaks` is False: two breakers in a
    row would know different things.
    """
    breaks = breaks and not isinstance(reranker, BreakingReranker)
    if isinstance(reranker, HitReranker):
        return TimedHitReranker(reranker, calls, breaks, reranker)
    return TimedReranker(reranker, calls, breaks)
