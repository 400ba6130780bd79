"""Cutting the pool, with slots for rare source types and required ones protected, and the final order of its hits."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final
from uuid import UUID

from retrieval.engine.state import Drop, DropReason
from retrieval.engine.tunables import Tunables, fraction, tunable
from retrieval.engine.types import Hit, Ranking
from retrieval.presets.consolidated.evidence.recovery import is_recovered
from retrieval.ranking.blend import on_unit_scale

PROTECTED: Final = "protected"
MERIT: Final = "merit_rank"  #: The signal with a hit's rank, from 1, before balancing.
PRECEDENCE: Final = "precedence"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaConfig(Tunables, label="Source type quota"):
    """How many chunks of each source type remain before reranking."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class FairnessConfig(Tunables, label="Fairness"):
    """Limits on the share of one document or source type in the top ranks."""

    document_share: float = tunable(0.5, low=0.05, high=1.0, help="Maximum share of ranks for one document.")
    type_share: float = tunable(0.75, low=0.05, high=1.0, help="Maximum share of ranks for one source type.")


def fair_order(hits: Ranking, slots: int, *, type_of: Callable[[Hit], str], config: FairnessConfig) -> Ranking:
    """Return all hits, with the first `slots` balanced among documents and source types.

    Each slot goes to the best hit whose document and type are below their shares; else to the best whose document is,
    else to the best. So a share is only exceeded if nothing else is left. The rest keeps its order. The signal
    "merit_rank" is each hit's rank before balancing.
    """
    document_limit, type_limit = (
        max(1, math.ceil(share * slots - 1e-9)) for share in (config.document_share, config.type_share)
    )
    documents: Counter[UUID] = Counter()
    types: Counter[str] = Counter()
    waiting = [replace(hit, signals={**hit.signals, MERIT: rank}) for rank, hit in enumerate(hits, start=1)]
    placed: list[Hit] = []
    while waiting and len(placed) < slots:
        in_share = [place for place, hit in enumerate(waiting) if documents[hit.chunk_id.document_id] < document_limit]
        fair = [place for place in in_share if types[type_of(waiting[place])] < type_limit]
        chosen = waiting.pop((fair or in_share or [0])[0])
        placed.append(chosen)
        documents[chosen.chunk_id.document_id] += 1
        types[type_of(chosen)] += 1
    return (*placed, *waiting)


def min_slots(hit: Hit, hits: Ranking, *, type_of: Callable[[Hit], str], config: FairnessConfig) -> int:
    """Return the minimum number of slots with which a hit gets one; `hits` include it and come from `fair_order`."""
    by_merit = tuple(sorted(hits, key=lambda it: it.signals[MERIT]))
    for slots in range(1, len(hits)):
        placed = fair_order(by_merit, slots, type_of=type_of, config=config)[:slots]
        if any(it.chunk_id == hit.chunk_id for it in placed):
            return slots
    return len(hits)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecedenceConfig(Tunables, label="Precedence"):
    """What a source type's precedence adds to a reranked score."""

    limit: float = tunable(
        0.004,
        low=0.0,
        high=0.05,
        help="Boost of the first source type; the last gets none, the others evenly spaced values.",
        at_most="min_margin",
    )
    min_margin: float = tunable(0.005, low=0.0, high=0.05, help="Minimum difference of reranker scores that counts.")
    fallback_share: float = fraction(0.5, help="Share of the boost for scores of the fallback, which are smaller.")


def boosts(precedence: Sequence[str], *, is_fallback: bool, config: PrecedenceConfig) -> dict[str, float]:
    """Return each source type's boost, most trusted first: evenly from `limit` to 0, for the fallback a share of it."""
    limit = config.limit * (config.fallback_share if is_fallback else 1.0)
    steps = max(1, len(precedence) - 1)
    return {name: limit * (len(precedence) - 1 - place) / steps for place, name in enumerate(precedence)}


def by_precedence(hits: Ranking, boost_of: Callable[[Hit], float | None]) -> Ranking:
    """Return hits ordered by score plus boost; the boost becomes a signal, the score does not change.

    Scores are compared on the unit scale: a logit by its logistic function. Ties keep their order. A lead larger than
    the maximum boost is never overturned. Hits whose boost is None rank last in their order.
    """
    boosts_of = [(hit, boost_of(hit)) for hit in hits]
    boosted = [replace(hit, signals={**hit.signals, PRECEDENCE: it}) for hit, it in boosts_of if it is not None]
    boosted.sort(key=lambda hit: -(on_unit_scale(hit) + hit.signals[PRECEDENCE]))
    return (*boosted, *(hit for hit, it in boosts_of if it is None))
