"""Cutting to a section's number of hits, with recovered chunks and required types protected."""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final

from retrieval.engine.state import Drop, DropReason
from retrieval.engine.types import Hit, Ranking
from retrieval.presets.consolidated.evidence.recovery import is_recovered

PROTECTED: Final = "protected"


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
