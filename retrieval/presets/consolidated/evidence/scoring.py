"""Scoring the pool: fused by ranks, by a cross-encoder in batches within the remaining time, or by cosine and BM25."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from threading import Lock
from typing import Final

from corecube.errors import ConfigError
from corecube.scope import AccessScope
from retrieval.encoders.reranker import MIN_SPAN, Reranker, scores_of
from retrieval.engine.deadline import Deadline
from retrieval.engine.tunables import Tunables, fraction, tunable
from retrieval.engine.types import Ranking, ScoreType
from retrieval.errors import RerankError, RerankTimeoutError
from retrieval.ranking.fusion import best_first, min_max

MAX_AT_ONCE: Final = 4
_UNFINISHED: Final = 2.0  #: The time of a call that timed out, as a multiple of what it was given.
Batch = tuple[int, int]  #: Half-open index range of a batch in the pool.
Outcome = Sequence[float] | Exception
_VARIANT: Final = re.compile(r"_\d+$")  #: Suffix of a ranking of a rephrasing.
_SEMANTIC: Final = "cosine"


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankPlanConfig(Tunables, label="Reranker"):
    """When and how the cross-encoder is called."""

    min_budget_ms: int = tunable(
        150, low=0, high=60_000, unit="ms", help="Minimum remaining time for calling the cross-encoder."
    )
    chunk_ms: float = tunable(
        25.0, low=0.1, high=5000.0, unit="ms", help="Initial estimate of the time per chunk.", is_shared=True
    )
    learning: float = fraction(
        0.2, help="Weight of the latest measurement in the estimate (moving average).", is_shared=True
    )
    forgetting: float = fraction(
        0.05, help="Share by which the estimate returns to its initial value after a skip.", is_shared=True
    )
    split_above: int = tunable(80, low=1, high=1000, unit="chunks", help="A larger pool is sent in batches.")
    batch: int = tunable(
        60, low=1, high=1000, unit="chunks", help="Chunks per batch; batches run in parallel.", at_most="split_above"
    )


class Provider(StrEnum):
    """What scored a chunk last."""

    CROSS_ENCODER = "cross_encoder"
    SEMANTIC_BM25 = "semantic_bm25"
    NONE = "none"  #: None: the pool's order is used.


class RerankSkip(StrEnum):
    """Why the cross-encoder was skipped."""

    CIRCUIT_BREAKER = "circuit_breaker"
    BUDGET = "budget"
    API_ERROR = "api_error"


@dataclass(frozen=True, slots=True)
class RerankPlan:
    """What to do with a pool."""

    skip: RerankSkip | None
    batches: tuple[tuple[int, int], ...]  #: Half-open index ranges of the concurrent batches; empty with a skip.
    floor_ms: float


def budget_floor_ms(chunks: int, chunk_ms: float, config: RerankPlanConfig) -> float:
    """Return the minimum remaining time for a number of chunks."""
    return max(config.min_budget_ms, chunks * chunk_ms)


def plan_rerank(
    chunks: int, *, remaining_ms: float, admits: bool, chunk_ms: float, config: RerankPlanConfig
) -> RerankPlan:
    """Return whether (not with an open breaker or too little time) and in which batches to call the cross-encoder."""
    floor_ms = budget_floor_ms(chunks, chunk_ms, config)
    if not admits:
        return RerankPlan(RerankSkip.CIRCUIT_BREAKER, (), floor_ms)
    if remaining_ms < floor_ms:
        return RerankPlan(RerankSkip.BUDGET, (), floor_ms)
    return RerankPlan(None, batches(chunks, config), floor_ms)


def batches(chunks: int, config: RerankPlanConfig) -> tuple[tuple[int, int], ...]:
    """Return the half-open index range of each batch, in order."""
    size = config.batch if chunks > config.split_above else max(1, chunks)
    return tuple((start, min(start + size, chunks)) for start in range(0, chunks, size))


def merged_scores(outcomes: Sequence[tuple[tuple[int, int], Sequence[float] | Exception]]) -> dict[int, float]:
    """Return the score of each index, given each batch's scores or error; raise the first error if all failed."""
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
    """Return the scored hits, best first, followed by those of failed batches in order.

    Without a weight the score is the only part. With one it is min-max-normalised over the scored hits, over at least
    `MIN_SPAN`, weighted, and added to the hit's position in the pool, from 1 for the first towards 0 for the last. The
    raw score and the pool's become the signals "rerank" and "pooled".
    """
    places = list(scores)
    raw = [scores[place] for place in places]
    if blend_weight is None:
        parts: list[Mapping[str, float]] = [{"rerank": score} for score in raw]
    else:
        shares = [(len(hits) - place) / len(hits) for place in places]
        added = [blend_weight * share for share in min_max(raw, min_span=MIN_SPAN)]
        parts = [{"pooled": share, "rerank": more} for share, more in zip(shares, added, strict=True)]
    scored = []
    for hit, score, part in zip((hits[place] for place in places), raw, parts, strict=True):
        found = hit.scored(math.fsum(part.values()), score_type, part)
        signals = {**hit.signals, "pooled": hit.score, "rerank": score}
        scored.append(replace(found, signals=signals, provider=Provider.CROSS_ENCODER))
    unscored = (replace(hit, provider=Provider.NONE) for place, hit in enumerate(hits) if place not in scores)
    return (*sorted(scored, key=best_first), *unscored)


@dataclass
class ChunkTime:
    """The expected time per chunk of a cross-encoder, as a moving average; thread-safe."""

    config: RerankPlanConfig
    ms: float = field(init=False)  #: The expected time per chunk in ms.
    _lock: Lock = field(init=False, default_factory=Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.ms = self.config.chunk_ms

    def measured(self, chunks: int, seconds: float) -> None:
        """Update with a measurement."""
        if chunks > 0:
            self._move(1000 * seconds / chunks, self.config.learning)

    def timed_out(self, chunks: int, seconds: float, *, is_short: bool = False) -> None:
        """Raise the time to twice what each chunk was given, so that no call with the same limits follows.

        A time that `is_short`, which a request can choose, only counts as a measurement.
        """
        given = 1000 * seconds / max(1, chunks)
        if is_short:
            self._move(max(self.ms, given), self.config.learning)
        else:
            self._move(max(self.ms, _UNFINISHED * given), 1.0)

    def skipped(self) -> None:
        """Move towards the initial time, so that a slow period does not exclude the cross-encoder forever."""
        if self.ms > self.config.chunk_ms:
            self._move(self.config.chunk_ms, self.config.forgetting)

    def _move(self, towards: float, share: float) -> None:
        with self._lock:
            self.ms += share * (towards - self.ms)


@dataclass(frozen=True, slots=True)
class RerankCall:
    """A call of a cross-encoder."""

    reranker: Reranker
    query: str
    scope: AccessScope
    deadline: Deadline

    def outcomes(self, hits: Ranking, batches: Sequence[Batch], executor: Executor) -> list[tuple[Batch, Outcome]]:
        """Return each batch with its scores or its RerankError.

        The wait hardly exceeds the time limit even if the cross-encoder does, unless the executor runs in the caller's
        thread.
        """
        lanes = [batches[lane::MAX_AT_ONCE] for lane in range(min(MAX_AT_ONCE, len(batches)))]

        def score(start: int, end: int) -> Outcome:
            seconds = self.deadline.leg_seconds
            try:
                return scores_of(self.reranker, self.query, hits[start:end], scope=self.scope, timeout_seconds=seconds)
            except RerankError as error:
                return error

        def run(lane: Sequence[Batch]) -> list[Outcome]:
            return [score(start, end) for start, end in lane]

        futures = [executor.submit(run, lane) for lane in lanes]
        found: dict[Batch, Outcome] = {}
        for lane, future in zip(lanes, futures, strict=True):
            # Slightly longer than the time limit, for an answer at the last moment.
            patience = (self.deadline.leg_seconds + self.deadline.remaining_seconds) / 2
            try:
                outcomes = future.result(timeout=patience)
            except TimeoutError:
                future.cancel()
                outcomes = [RerankTimeoutError() for _ in lane]
            except RerankError as error:
                outcomes = [error for _ in lane]
            found |= zip(lane, outcomes, strict=True)
        return [(batch, found[batch]) for batch in batches]


def ranking_weights(names: Iterable[str], sparse_weight: float) -> dict[str, float]:
    """Return the weight of each ranking, also of a rephrasing ("dense_2"): the rest of 1 for dense."""
    of_leg = {"dense": 1 - sparse_weight, "bm25": sparse_weight}
    return {name: of_leg.get(_VARIANT.sub("", name), 0.0) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticBm25Config(Tunables, label="SemanticBM25"):
    """Weights of similarity and BM25 in the fallback; they are normalised to a sum of 1."""

    semantic: float = tunable(0.7, low=0.05, high=1.0, help="Weight of the cosine.")
    bm25: float = fraction(0.3, help="Weight of BM25, as a share of the pool's best.")


def semantic_bm25(hits: Ranking, config: SemanticBm25Config, *, lexical: str = "bm25") -> Ranking:
    """Return hits by weighted cosine and BM25 over the sum of the weights, best first, 0 to 1.

    Negative cosines count as 0, BM25 is a share of the pool's best. A missing signal counts as 0; one that no hit has
    gets no weight. Without either every hit scores 0. `lexical` names the text signal. Raises ConfigError if both
    weights are 0.
    """
    if config.semantic + config.bm25 == 0:
        raise ConfigError("The fallback's weights must not both be 0.")
    best = max((hit.signals.get(lexical, 0.0) for hit in hits), default=0.0)
    weights = {
        "semantic": config.semantic if any(_SEMANTIC in hit.signals for hit in hits) else 0.0,
        "bm25": config.bm25 if best > 0 else 0.0,
    }
    total = sum(weights.values())
    scored = []
    for hit in hits:
        parts = {
            "semantic": _share(weights["semantic"], total) * min(1.0, max(0.0, hit.signals.get(_SEMANTIC, 0.0))),
            "bm25": _share(weights["bm25"], total) * _share(max(0.0, hit.signals.get(lexical, 0.0)), best),
        }
        found = hit.scored(sum(parts.values()), ScoreType.BLEND, parts)
        signals = {**hit.signals, "pooled": hit.score}
        scored.append(replace(found, signals=signals, provider=Provider.SEMANTIC_BM25))
    return tuple(sorted(scored, key=best_first))


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
