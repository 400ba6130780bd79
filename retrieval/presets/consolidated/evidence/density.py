"""The density-adaptive floor: a dense pool's tail is cut off at the first cliff in its scores, before reranking.

A cross-encoder takes time for every chunk, and chunks behind a cliff would rank last anyway. The cut is decided from
the unfiltered pool (`tighten_hint`) and checked again when it is applied (`tighten`), since the breaker may have opened
in between. The position of a cliff depends on the query and is not stored.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from retrieval.encoders.breaker import BreakerState
from retrieval.encoders.cosine_scale import UNSCALED, CosineScale
from retrieval.engine.state import Drop, DropReason
from retrieval.engine.tunables import Tunables, fraction, tunable
from retrieval.engine.types import Hit, Ranking
from retrieval.presets.consolidated.evidence.depth import Grade


def above_score_floor(
    hits: Ranking, floor: float, scale: CosineScale = UNSCALED, *, why: str = "floor"
) -> tuple[Ranking, tuple[Drop, ...]]:
    """Keep hits whose nearness reaches the floor that `why` names, in order; one without a cosine stays."""
    kept: list[Hit] = []
    drops: list[Drop] = []
    for hit in hits:
        nearness = scale.nearness_of(hit)
        if nearness is None or nearness >= floor:
            kept.append(hit)
        else:
            numbers = {"nearness": nearness, "cosine": hit.signals["cosine"], "floor": floor}
            detail = f"scaled similarity {nearness:.2f} (cosine {hit.signals['cosine']:.2f}), {why} {floor:.2f}"
            drops.append(Drop(hit.chunk_id, DropReason.BELOW_FLOOR, detail, numbers))
    return tuple(kept), tuple(drops)


def above_quality_floor(hits: Ranking, floor: float) -> tuple[Ranking, tuple[Drop, ...]]:
    """Keep hits whose quality reaches the floor, in order."""
    drops = tuple(
        Drop(
            hit.chunk_id,
            DropReason.QUALITY,
            f"quality {hit.chunk.quality:.2f}, floor {floor:.2f}",
            {"quality": hit.chunk.quality, "floor": floor},
        )
        for hit in hits
        if hit.chunk.quality < floor
    )
    return tuple(hit for hit in hits if hit.chunk.quality >= floor), drops


@dataclass(frozen=True, slots=True, kw_only=True)
class DensityConfig(Tunables, label="Density floor"):
    """When the end of a dense pool is cut off before reranking."""

    cliff_ratio: float = tunable(0.85, low=0.1, high=1.0, help="Maximum ratio to the previous score at a cliff.")
    cliff_drop: float = fraction(0.05, unit="similarity", help="Minimum score drop at a cliff.")
    rate_from: float = fraction(
        0.02, help="Minimum share of a section's searches that should be cut.", at_most="rate_to"
    )
    rate_to: float = fraction(0.40, help="Maximum share of a section's searches that should be cut.")


class TightenSkip(StrEnum):
    """Why a pool was not cut."""

    GRADE = "grade"
    INPUTS = "inputs_missing"  #: Cosines, grade, floor or the number of hits are unknown.
    #: Without a cross-encoder the fallback scores, which needs more candidates.
    NO_CROSS_ENCODER = "no_cross_encoder"
    BREAKER = "breaker_not_closed"
    NO_ROOM = "no_room_above_core"
    NO_CLIFF = "no_cliff"
    WEAKER = "weaker_than_static_floor"  #: The section's floor already drops the chunks below the cliff.
    BREAKER_AT_APPLY = "breaker_not_closed_at_apply"
    POOL_SIZE = "pool_size"
    SOURCE_DIVERSITY_LOSS = "source_diversity_loss"


@dataclass(frozen=True, slots=True)
class TightenHint:
    """Where a pool can be cut, or why not."""

    floor: float | None = None  #: Minimum nearness after the cut; None for no cut.
    cliff_position: int | None = None
    skip: TightenSkip | None = None


@dataclass(frozen=True, slots=True)
class Tightened:
    """A pool after the cut, or unchanged."""

    hits: Ranking
    floor: float | None
    cliff_position: int | None
    skip: TightenSkip | None
    drops: tuple[Drop, ...] = ()

    @property
    def is_applied(self) -> bool:
        """Whether it was cut."""
        return self.skip is None

    @property
    def telemetry(self) -> dict[str, object]:
        """The fields of the event; with the floor only if the pool was cut."""
        return {
            "tighten_applied": self.is_applied,
            "tighten_effective_floor": self.floor if self.is_applied else None,
            "tighten_cliff_position": self.cliff_position,
            "tighten_dropped_count": len(self.drops),
            "tighten_skip_reason": "" if self.skip is None else str(self.skip),
        }


def tighten_hint(
    nearness: Sequence[float] | None,
    *,
    grade: Grade | None,
    static_floor: float | None,
    keep: int | None,
    breaker: BreakerState | None,
    config: DensityConfig,
) -> TightenHint:
    """Return where a pool can be cut, by the nearness of all its hits in any order.

    The best `keep` hits are never cut; the first cliff behind them counts. `breaker` is None without a cross-encoder.
    """
    if nearness is None or grade is None or static_floor is None or keep is None:
        return TightenHint(skip=TightenSkip.INPUTS)
    unfit = {
        TightenSkip.GRADE: not grade.is_high,
        TightenSkip.NO_CROSS_ENCODER: breaker is None,
        TightenSkip.BREAKER: breaker is not BreakerState.CLOSED,
        TightenSkip.NO_ROOM: len(nearness) <= keep,
    }
    if skip := next((skip for skip, holds in unfit.items() if holds), None):
        return TightenHint(skip=skip)
    falling = sorted(nearness, reverse=True)
    position = first_cliff(falling, start=keep, config=config)
    if position is None:
        return TightenHint(skip=TightenSkip.NO_CLIFF)
    if falling[position] <= static_floor:
        return TightenHint(cliff_position=position, skip=TightenSkip.WEAKER)
    return TightenHint(floor=falling[position - 1], cliff_position=position)


def first_cliff(falling: Sequence[float], *, start: int, config: DensityConfig) -> int | None:
    """Return the first index from `start` (at least 1) whose score lies below a cliff; None without one.

    Its score is under `cliff_ratio` of the previous one, and smaller by at least `cliff_drop`.
    """
    for place in range(max(start, 1), len(falling)):
        before, score = falling[place - 1], falling[place]
        # Rounded, since 0.30 - 0.25 is slightly less than 0.05.
        if score < config.cliff_ratio * before and round(before - score, 9) >= config.cliff_drop:
            return place
    return None


def tighten(  # noqa: PLR0913 -- by keyword
    hits: Ranking,
    hint: TightenHint,
    *,
    keep: int,
    breaker: BreakerState | None,
    type_of: Callable[[Hit], str],
    minimum_of: Mapping[str, int] = MappingProxyType({}),
    scale: CosineScale = UNSCALED,
) -> Tightened:
    """Return the pool without hits whose nearness is below the hint's floor, or unchanged.

    It is unchanged while the breaker is not closed, if fewer than `keep` hits would remain, and if a source type would
    lose its last hit, or fall below its number in `minimum_of`. A hit without a cosine stays.
    """
    if hint.floor is None:
        return Tightened(hits, None, hint.cliff_position, hint.skip)
    kept, drops = above_score_floor(hits, hint.floor, scale, why="behind a cliff at")
    skip = TightenSkip.POOL_SIZE if len(kept) < keep else None
    if breaker is not BreakerState.CLOSED:
        skip = TightenSkip.BREAKER_AT_APPLY
    before, after = Counter(map(type_of, hits)), Counter(map(type_of, kept))
    if skip is None and any(after[it] < min(count, max(1, minimum_of.get(it, 1))) for it, count in before.items()):
        skip = TightenSkip.SOURCE_DIVERSITY_LOSS
    if skip is not None:
        return Tightened(hits, hint.floor, hint.cliff_position, skip)
    return Tightened(kept, hint.floor, hint.cliff_position, None, drops)


def is_rate_in_band(outcomes: Counter[bool], config: DensityConfig) -> bool:
    """Return whether the share of cut searches (the key True) is in its target band; True without searches."""
    total = outcomes.total()
    return total == 0 or config.rate_from <= outcomes[True] / total <= config.rate_to
