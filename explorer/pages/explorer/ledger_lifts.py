"""Why the graph lifted a hit, in words: by which name or link, from which hit, in which sentence."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from retrieval.engine.types import ChunkId, Hit, Lift

_ELSEWHERE: Final = "a passage not shown"
_MAX_CHARACTERS: Final = 200
_MAX_LIFTS: Final = 4
#: What is said of a lift; {source} is the hit that it comes from.
_WORDS: Final[Mapping[str, str]] = {
    "named": "named in the query",
    "link": "linked by name from {source}",
    "shared_name": "shares a rare name with {source}",
    "hyperlink": "linked from {source}",
    "triple": "mentioned in {source}",
    "next": "next to {source}",
    "section": "in the section of {source}",
}


def lift_facts(hit: Hit, hits: Sequence[Hit]) -> tuple[str, ...]:
    """Return a clause for each of a hit's greatest lifts, and one for what the others sum to.

    `hits` are those shown, in order, by whose place a source is told.
    """
    if not hit.lifts:
        return ("not linked from any hit and not named in the query",)
    places = {shown.chunk_id: f"#{place}" for place, shown in enumerate(hits, start=1)}
    told = sorted(hit.lifts, key=lambda lift: -lift.amount)
    rest = [lift.amount for lift in told[_MAX_LIFTS:]]
    more = (f"and {len(rest)} more: {math.fsum(rest):+.3f}",) if rest else ()
    return (*(_told(lift, places) for lift in told[:_MAX_LIFTS]), *more)


def _told(lift: Lift, places: Mapping[ChunkId, str]) -> str:
    source = _ELSEWHERE if lift.source is None else places.get(lift.source, _ELSEWHERE)
    words = _WORDS.get(lift.kind, lift.kind.replace("_", " ")).format(source=source)
    name = f" {_quoted(lift.name)}" if lift.name else ""
    sentence = f" by: {_quoted(lift.sentence)}" if lift.sentence and lift.sentence != lift.name else ""
    return f"{words}{name}{sentence} {lift.amount:+.3f}"


def _quoted(text: str) -> str:
    short = (
        text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS].rpartition(' ')[0]} \N{HORIZONTAL ELLIPSIS}"
    )
    return f"\N{LEFT DOUBLE QUOTATION MARK}{short}\N{RIGHT DOUBLE QUOTATION MARK}"
