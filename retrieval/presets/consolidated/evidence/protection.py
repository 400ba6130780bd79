"""The cut to what a section keeps: it leaves recovered chunks, and enough of the types that are required."""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final

from retrieval.engine.state import Drop, DropReason
from retrieval.engine.types import Hit, Ranking
from retrieval.presets.consolidated.evidence.recovery import is_recovered

#: The signal of a hit that was let back in.
PROTECTED: Final = "protected"


def cut_with_protection(
    hits: Ranking, *, keep: int, max_protected: int, survivor_floors: Mapping[str, int], type_of: Callable[[Hit], str]
) -> tuple[Ranking, tuple[Drop, ...]]:
    """Return the first `keep` hits and, in their order, those that are let back in behind them.

    Those are the first `max_protected` recovered hits that the cut took; then, of each type that is still under its
    survivor floor, the first ones up to the floor, as far as there are any. They have the rank that they came with,
    from 1, among their signals, "protected". Expects all hits, in the order that decides who is kept.
    """
    cut = range(min(keep, len(hits)), len(hits))
    kept = {*range(min(keep, len(hits)))}
    kept.update(islice((place for place in cut if is_recovered(hits[place])), max_protected))
    for source_type, floor in survivor_floors.items():
        own = [place for place, hit in enumerate(hits) if type_of(hit) == source_type]
        lacking = floor - sum(place in kept for place in own)
        kept.update(islice((place for place in own if place not in kept), max(0, lacking)))
    drops = tuple(
        Drop(hit.chunk_id, DropReason.RERANK_CUT, f"rank {place + 1}, kept {keep}", {"rank": place + 1, "window": keep})
        for place, hit in enumerate(hits)
        if place not in kept
    )
    found = (
        hits[place] if place < keep else hits[place].with_signals({**hits[place].signals, PROTECTED: place + 1})
        for place in sorted(kept)
    )
    return tuple(found), drops
