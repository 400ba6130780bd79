"""Stage C: the cut before reranking leaves room for source types that are there in small numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from retrieval.engine.state import Drop, DropReason
from retrieval.engine.tunables import Tunables, tunable
from retrieval.engine.types import Hit, Ranking


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaConfig(Tunables):
    """What the cut before reranking leaves of each source type."""

    label: ClassVar[str] = "Source type quota"

    seats: int = tunable(
        2, low=1, high=50, unit="chunks", help="Best chunks of every source type that the cut keeps, if there is room."
    )
    max_share: float = tunable(
        0.5,
        low=0.0,
        high=1.0,
        unit="",
        help="Share of places beyond which no source type gets a second place by quota.",
    )


def cut_with_quota(
    hits: Ranking, top_k: int, *, type_of: Callable[[Hit], str], config: QuotaConfig
) -> tuple[Ranking, tuple[Drop, ...]]:
    """Return the best `top_k` of an over-fetched pool, in order, with the best hits of every source type among them.

    First the best hit of each type gets a seat, the better placed types first where there are more of them than places;
    then the second of each and so on, the worse placed types first, up to `seats` and while less than `max_share` of
    the places is taken. The other places go to the best of the rest.
    """
    seated = _seats(hits, top_k, type_of, config)
    rest = [place for place in range(len(hits)) if place not in seated]
    kept = seated.union(rest[: top_k - len(seated)])
    drops = tuple(
        Drop(
            hit.chunk_id,
            DropReason.SOURCE_QUOTA if rank <= top_k else DropReason.OUTSIDE_WINDOW,
            f"rank {rank}, window {top_k}",
            {"rank": rank, "window": top_k},
        )
        for rank, hit in enumerate(hits, start=1)
        if rank - 1 not in kept
    )
    return tuple(hits[place] for place in sorted(kept)), drops


def _seats(hits: Ranking, top_k: int, type_of: Callable[[Hit], str], config: QuotaConfig) -> set[int]:
    """Return the places in the pool that the quota keeps."""
    by_type: dict[str, list[int]] = {}
    for place, hit in enumerate(hits):
        by_type.setdefault(type_of(hit), []).append(place)
    seated: set[int] = set()
    for turn in range(config.seats):
        types = list(by_type.values())
        for places in types if turn == 0 else reversed(types):
            is_room = len(seated) < (top_k if turn == 0 else config.max_share * top_k)
            if is_room and turn < len(places):
                seated.add(places[turn])
    return seated
