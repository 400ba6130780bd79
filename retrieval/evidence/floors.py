"""The floors that chunks must clear before they are reranked."""

from collections.abc import Callable

from retrieval.types import Drop, DropReason, Hit, Ranking


def above_score_floor(hits: Ranking, floor: float) -> tuple[Ranking, tuple[Drop, ...]]:
    """Keep hits whose cosine reaches the floor, in order; one whose cosine is not known stays."""
    return _above(hits, floor, DropReason.BELOW_FLOOR, "cosine", lambda hit: hit.signals.get("cosine"))


def above_quality_floor(hits: Ranking, floor: float) -> tuple[Ranking, tuple[Drop, ...]]:
    """Keep hits whose quality reaches the floor, in order."""
    return _above(hits, floor, DropReason.QUALITY, "quality", lambda hit: hit.chunk.quality)


def _above(
    hits: Ranking, floor: float, reason: DropReason, what: str, value_of: Callable[[Hit], float | None]
) -> tuple[Ranking, tuple[Drop, ...]]:
    kept: list[Hit] = []
    drops: list[Drop] = []
    for hit in hits:
        value = value_of(hit)
        if value is None or value >= floor:
            kept.append(hit)
        else:
            detail = f"{what} {value:.2f}, floor {floor:.2f}"
            drops.append(Drop(hit.chunk_id, reason, detail, {what: value, "floor": floor}))
    return tuple(kept), tuple(drops)
