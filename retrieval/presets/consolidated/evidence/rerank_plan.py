"""Whether a pool is sent to the cross-encoder, in which batches, and how their answers come together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from threading import Lock
from typing import ClassVar

from retrieval.engine.tunables import Tunables, tunable
from retrieval.engine.types import Hit, Ranking, ScoreType
from retrieval.ranking.fusion import best_first, min_max


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankPlanConfig(Tunables):
    """When the cross-encoder is asked, and in how many requests."""

    label: ClassVar[str] = "Reranker"

    min_budget_ms: int = tunable(
        150, low=0, high=60_000, unit="ms", help="With less time left, the cross-encoder is not called."
    )
    chunk_ms: float = tunable(
        25.0, low=0.1, high=5000.0, unit="ms", help="Expected time per chunk until it is measured.", is_shared=True
    )
    learning: float = tunable(
        0.2,
        low=0.0,
        high=1.0,
        unit="",
        help="Weight of the last measurement in the time per chunk that is expected.",
        is_shared=True,
    )
    forgetting: float = tunable(
        0.05,
        low=0.0,
        high=1.0,
        unit="",
        help="Share by which the expected time returns to its first value after a skip.",
        is_shared=True,
    )
    split_above: int = tunable(80, low=1, high=1000, unit="chunks", help="A larger pool is sent in batches.")
    batch: int = tunable(
        60, low=1, high=1000, unit="chunks", help="Chunks per batch; batches run in parallel.", at_most="split_above"
    )


class Provider(StrEnum):
    """What scored a chunk last."""

    CROSS_ENCODER = "cross_encoder"
    SEMANTIC_BM25 = "semantic_bm25"
    #: Nothing did: the pool's order stands.
    NONE = "none"


class RerankSkip(StrEnum):
    """Why the fallback scored instead of the cross-encoder."""

    CIRCUIT_BREAKER = "circuit_breaker"
    BUDGET = "budget"
    API_ERROR = "api_error"


@dataclass(frozen=True, slots=True)
class RerankPlan:
    """What to do with a pool."""

    skip: RerankSkip | None
    #: (first, after last) of each batch, side by side; empty with a skip.
    batches: tuple[tuple[int, int], ...]
    #: The time that has to be left, in ms.
    floor_ms: float


def budget_floor_ms(chunks: int, chunk_ms: float, config: RerankPlanConfig) -> float:
    """Return the time that must be left for so many chunks: that of the chunks, and an absolute least."""
    return max(config.min_budget_ms, chunks * chunk_ms)


def plan_rerank(
    chunks: int, *, remaining_ms: float, admits: bool, chunk_ms: float, config: RerankPlanConfig
) -> RerankPlan:
    """Return whether and how to ask the cross-encoder about a pool of so many chunks.

    It is not asked while its breaker does not admit it, nor with too little time to finish.
    """
    floor_ms = budget_floor_ms(chunks, chunk_ms, config)
    if not admits:
        return RerankPlan(RerankSkip.CIRCUIT_BREAKER, (), floor_ms)
    if remaining_ms < floor_ms:
        return RerankPlan(RerankSkip.BUDGET, (), floor_ms)
    return RerankPlan(None, batches(chunks, config), floor_ms)


def batches(chunks: int, config: RerankPlanConfig) -> tuple[tuple[int, int], ...]:
    """Return (first, after last) of each batch, disjoint and in order; one for a pool that is not split."""
    size = config.batch if chunks > config.split_above else max(1, chunks)
    return tuple((start, min(start + size, chunks)) for start in range(0, chunks, size))


def merged_scores(outcomes: Sequence[tuple[tuple[int, int], Sequence[float] | Exception]]) -> dict[int, float]:
    """Return the score of each place that a batch scored, given each batch with its scores or what it raised.

    Raises the first batch's error where every batch failed, so that a breaker hears of it.
    """
    failed = [outcome for _, outcome in outcomes if isinstance(outcome, Exception)]
    if failed and len(failed) == len(outcomes):
        raise failed[0]
    return {
        place: score
        for (start, end), outcome in outcomes
        if not isinstance(outcome, Exception)
        for place, score in zip(range(start, end), outcome, strict=True)
    }


def reranked(
    hits: Ranking, scores: Mapping[int, float], score_type: ScoreType, *, blend_weight: float | None = None
) -> Ranking:
    """Return the scored hits best first, and behind them, as they came, those whose batch failed.

    Without a weight a score is the hit's own and its only part. With one it is min-max-normalised over the scored hits
    and added, times the weight, to the hit's place in the pool, 1 for the first and towards 0 for the last: what stood
    there was scored in more than one way. The raw score and the pool's are kept as signals, "rerank" and "pooled".
    """
    places = list(scores)
    raw = [scores[place] for place in places]
    if blend_weight is None:
        parts: list[Mapping[str, float]] = [{"rerank": score} for score in raw]
    else:
        shares = [(len(hits) - place) / len(hits) for place in places]
        added = [blend_weight * share for share in min_max(raw)]
        parts = [{"pooled": share, "rerank": more} for share, more in zip(shares, added, strict=True)]
    scored = [
        _scored(hits[place], score, score_type, part) for place, score, part in zip(places, raw, parts, strict=True)
    ]
    unscored = (replace(hit, provider=Provider.NONE) for place, hit in enumerate(hits) if place not in scores)
    return (*sorted(scored, key=best_first), *unscored)


def _scored(hit: Hit, raw: float, score_type: ScoreType, parts: Mapping[str, float]) -> Hit:
    found = hit.scored(math.fsum(parts.values()), score_type, parts)
    signals = {**hit.signals, "pooled": hit.score, "rerank": raw}
    return replace(found, signals=signals, provider=Provider.CROSS_ENCODER)


@dataclass
class ChunkTime:
    """How long a cross-encoder takes for a chunk, learned from what it took. Safe to share between threads."""

    config: RerankPlanConfig
    _ms: float = field(init=False)
    _lock: Lock = field(init=False, default_factory=Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._ms = self.config.chunk_ms

    @property
    def ms(self) -> float:
        """The time per chunk that is expected now, in ms."""
        return self._ms

    def measured(self, chunks: int, seconds: float) -> None:
        """Take into account that so many chunks took so long."""
        if chunks > 0:
            self._move(1000 * seconds / chunks, self.config.learning)

    def timed_out(self, chunks: int, seconds: float) -> None:
        """Take into account that so many chunks would have taken longer than that: it can only raise the time."""
        if chunks > 0 and (minimum := 1000 * seconds / chunks) > self._ms:
            self._move(minimum, self.config.learning)

    def skipped(self) -> None:
        """Return a little towards the first expectation: else a slow hour would shut the cross-encoder out for good."""
        if self._ms > self.config.chunk_ms:
            self._move(self.config.chunk_ms, self.config.forgetting)

    def _move(self, towards: float, share: float) -> None:
        with self._lock:
            self._ms += share * (towards - self._ms)
