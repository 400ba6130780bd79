"""Cutting the pool: before reranking with slots for rare source types, at the end with required types protected."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Final

from retrieval.engine.state import Drop, DropReason
from retrieval.engine.tunables import Tunables, fraction, tunable
from retrieval.engine.types import Hit, Ranking
from retrieval.presets.consolidated.evidence.recovery import is_recovered

PROTECTED: Final = "protected"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaConfig(Tunables):
    """How many chunks of each source type remain before reranking."""

    label: ClassVar[str] = "Source type quota"

    seats: int = tunable(
        2, low=1, high=50, unit="chunks", help="Number of slots reserved for the best chunks of every source type."
    )
    max_share: float = fraction(0.5, help="Above this share of the slots, a source type gets no second reserved slot.")


def cut_with_quota(
    hits: Ranking, top_k: int, *, type_of: Callable[[Hit], str], config: QuotaConfig
) -> tuple[Ranking, tuple[Drop, ...]]:
    """Return the best `top_k` hits of a pool in order, with slots reserved for every source type.

    First the best hit of each type gets a slot, in the order of the types' best ranks; then the second of each and so
    on, in reverse order, up to `seats` per type and while less than `max_share` of the slots is reserved. The other
    slots go to the best of the rest.
    """
    by_type: dict[str, list[int]] = {}
    for place, hit in enumerate(hits):
        by_type.setdefault(type_of(hit), []).append(place)
    reserved: set[int] = set()
    for turn in range(config.seats):
        types = list(by_type.values())
        for places in types if turn == 0 else reversed(types):
            is_room = len(reserved) < (top_k if turn == 0 else config.max_share * top_k)
            if is_room and turn < len(places):
                reserved.add(places[turn])
    rest = [place for place in range(len(hits)) if place not in reserved]
    kept = reserved.union(rest[: top_k - len(reserved)])
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


def cut_with_protection(
    hits: Ranking, *, keep: int, max_protected: int, survivor_floors: Mapping[str, int], type_of: Callable[[Hit], str]
) -> tuple[Ranking, tuple[Drop, ...]]:
    """Return the first `keep` hits and the protected ones behind them, in order.

    Protected are the first `max_protected` recovered hits behind the cut, then the best hits of each type up to its
    survivor floor. Their signal "protected" is their original rank, from 1. Expects all hits in their final order.
    """
    cut = range(min(keep, len(hits)), len(hits))
    kept = {*range(min(keep, len(hits)))}
    kept.update(islice((place for place in cut if is_recovered(hits[place])), max_protected))
    for source_type, floor in survivor_floors.items():
        own = [place for place, hit in enumerate(hits) if type_of(hit) == source_type]
        lacking = floor - sum(place in kept for place in own)
        kept.update(islice((place for place in own if place not in kept), max(0, lacking)))
    drops = tuple(
        Drop(hit.chunk_id, DropReason.RERANK_CUT, f"rank {place + 1}, top {keep}", {"rank": place + 1, "window": keep})
        for place, hit in enumerate(hits)
        if place not in kept
    )
    found = (
        hits[place] if place < keep else hits[place].with_signals({**hits[place].signals, PROTECTED: place + 1})
        for place in sorted(kept)
    )
    return tuple(found), drops
