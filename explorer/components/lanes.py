"""Lanes: rankings side by side, with a line for each chunk that is in two of them.

Rows have a fixed height, so that the lines need no script that measures the page.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

from corecube.scope import AccessScope
from explorer import wording
from explorer.components.snippets import Segment, hit_text
from retrieval.engine.state import DropReason
from retrieval.engine.types import ChunkId, Hit, Ranking
from retrieval.ranking.comparison import Direction, Move, compare
from retrieval.search.outcome import SearchOutcome

MAX_CARDS: Final = 20
_SNIPPET: Final = 120  #: Characters of a card's snippet, about two lines.
_WIDTH: Final = 100  #: Units of the drawing: its width, and the height of one row.
_ROW: Final = 100
RESULT: Final = "result"
_TWO: Final = 2
_ABSENT: Final = "\N{EN DASH}"
_ARROWS: Final = {Direction.UP: "↑", Direction.DOWN: "↓", Direction.SAME: "="}
_HUES: Final = ("indigo", "teal", "amber", "violet", "green", "rose", "olive", "slate")

Ranks = Mapping[ChunkId, int]  #: The ranks of a ranking, from 1.


@dataclass(frozen=True, slots=True)
class Place:
    """The rank of a card's chunk in another lane."""

    lane: str
    text: str  #: The rank, or why there is none.
    direction: str = ""  #: How the result moved it: up, down, same; empty if the other lane does not have it.
    arrow: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A chunk in a lane."""

    rank: int
    #: None for a chunk that was deleted or that the reader may not see: only its rank is shown.
    chunk_id: ChunkId | None
    score: str
    title: tuple[Segment, ...] = ()
    trail: tuple[str, ...] = ()
    snippet: tuple[Segment, ...] = ()
    source: str = ""
    hue: str = ""
    places: tuple[Place, ...] = ()
    is_last: bool = False

    @property
    def is_alone(self) -> bool:
        """Whether no other lane has the chunk."""
        return not any(place.direction for place in self.places)


@dataclass(frozen=True, slots=True)
class Source:
    """The ranking of a lane."""

    key: str
    label: str
    hits: Ranking  #: Best first.
    is_result: bool = False  #: The colours of lines show how this lane changes the ranks of the others.
    returned: int | None = None  #: How many were returned; None for all.


@dataclass(frozen=True, slots=True)
class Facts:
    """The data behind the cards' texts."""

    read: Mapping[ChunkId, Hit]  #: The chunks that the reader may see, with facts.
    scope: AccessScope
    reasons: Mapping[ChunkId, str] = field(default_factory=dict)


def lane_sources(outcome: SearchOutcome) -> tuple[Source, ...]:
    """Return a search's lanes: first leg, result, other legs; without hits that the access check dropped."""
    state = outcome.state
    denied = {drop.chunk_id for drop in state.drops if drop.reason is DropReason.ACCESS}
    legs = [
        Source(leg, wording.lane_label(leg), tuple(hit for hit in ranking if hit.chunk_id not in denied))
        for leg, ranking in state.rankings.items()
    ]
    hits = state.hits if state.access_checked else ()
    label = "Hybrid" if len(legs) > 1 else "Result"
    return (*legs[:1], Source(RESULT, label, hits, is_result=True, returned=state.top_k), *legs[1:])


def shown_hits(sources: Sequence[Source]) -> dict[ChunkId, Hit]:
    """Return the hits that the lanes show, one per chunk."""
    return first_with_facts(hit for source in sources for hit in source.hits[:MAX_CARDS])


def first_with_facts(hits: Iterable[Hit]) -> dict[ChunkId, Hit]:
    """Return one hit per chunk, with facts if any has them."""
    found: dict[ChunkId, Hit] = {}
    for hit in hits:
        if hit.chunk_id not in found or found[hit.chunk_id].facts is None:
            found[hit.chunk_id] = hit
    return found


def drop_words(outcome: SearchOutcome) -> dict[ChunkId, str]:
    """Return why each chunk was dropped; nameless drops are left out."""
    drops = (it for it in outcome.state.drops if not it.is_nameless and it.reason is not DropReason.TOP_K)
    return {drop.chunk_id: drop.reason.label for drop in drops}


def lanes_panel(sources: Sequence[Source], facts: Facts) -> dict[str, Any]:
    """Return the lanes of rankings, in their order."""
    ranks = {source.key: {hit.chunk_id: rank for rank, hit in enumerate(source.hits, start=1)} for source in sources}
    # Once per chunk: choosing a snippet is slow, and a chunk can be in several lanes.
    faces = {chunk_id: face(hit, facts.scope) for chunk_id, hit in facts.read.items()}
    lanes = [_lane(source, sources, ranks, facts.reasons, faces) for source in sources]
    height = max((len(lane["cards"]) for lane in lanes), default=0) * _ROW
    gaps = [
        {"lines": tuple(_lines(left, right, ranks)), "width": _WIDTH, "height": height}
        for left, right in pairwise(sources)
    ]
    return {
        "lanes": tuple({**lane, "gap": gap} for lane, gap in zip(lanes, [*gaps, None], strict=True)),
        "table": tuple(_table(sources, lanes)),
        "overlap": _overlap(sources),
        "result": next((source.label for source in sources if source.is_result), ""),
        "limit": MAX_CARDS,
    }


def _lane(
    source: Source,
    sources: Sequence[Source],
    ranks: Mapping[str, Ranks],
    reasons: Mapping[ChunkId, str],
    faces: Mapping[ChunkId, Card],
) -> dict[str, Any]:
    """Return one lane; its cards show the ranks in the lanes that it is compared with: a leg with the result."""
    others = [it for it in sources if it.key != source.key and (it.is_result or source.is_result)]
    cards: list[Card] = []
    for rank, hit in enumerate(source.hits[:MAX_CARDS], start=1):
        places = tuple(_place(source, rank, other, ranks[other.key].get(hit.chunk_id)) for other in others)
        if not source.is_result and hit.chunk_id in reasons:
            places = tuple(it if it.direction else Place(it.lane, reasons[hit.chunk_id]) for it in places)
        shown = faces.get(hit.chunk_id, Card(0, None, ""))
        score, is_last = f"{hit.score:.3f}", rank == source.returned
        cards.append(replace(shown, rank=rank, score=score, places=places, is_last=is_last))
    returned = None if source.returned is None else min(source.returned, len(source.hits))
    total = len(source.hits)
    return {"key": source.key, "label": source.label, "cards": tuple(cards), "total": total, "returned": returned}


def _place(source: Source, rank: int, other: Source, there: int | None) -> Place:
    """Return a chunk's rank in another lane; the arrow shows how the result moved it, whichever of the two that is."""
    if there is None:
        return Place(other.label, _ABSENT)
    move = Move("", there, rank) if source.is_result else Move("", rank, there)
    return Place(other.label, str(there), move.direction, _ARROWS[move.direction])


def face(hit: Hit, scope: AccessScope) -> Card:
    """Return what all cards of a chunk share; rank and score differ by lane."""
    connection = scope.inclusion(hit.chunk.connection_id).connection
    title, snippet = hit_text(hit, connection, characters=_SNIPPET)
    return Card(0, hit.chunk_id, "", title, hit.chunk.heading_path, snippet, connection.name, hue_of(connection.id))


def hue_of(connection_id: int) -> str:
    """Return a connection's hue, the same on every page."""
    return _HUES[connection_id % len(_HUES)]


def _lines(left: Source, right: Source, ranks: Mapping[str, Ranks]) -> Iterator[dict[str, Any]]:
    """Yield a curve for each chunk that both lanes show, coloured by how the result moved it."""
    before, after = (right, left) if left.is_result else (left, right)
    for hit in left.hits[:MAX_CARDS]:
        rank, there = ranks[left.key][hit.chunk_id], ranks[right.key].get(hit.chunk_id)
        if there is not None and there <= MAX_CARDS:
            move = Move("", ranks[before.key][hit.chunk_id], ranks[after.key][hit.chunk_id])
            start, end, middle = rank * _ROW - _ROW // 2, there * _ROW - _ROW // 2, _WIDTH // 2
            yield {"path": f"M0 {start}C{middle} {start} {middle} {end} {_WIDTH} {end}", "direction": move.direction}


def _overlap(sources: Sequence[Source]) -> dict[str, Any] | None:
    pair = sources if len(sources) == _TWO else [source for source in sources if not source.is_result]
    if len(pair) != _TWO:
        return None
    left, right = pair
    found = compare([hit.chunk_id for hit in left.hits], [hit.chunk_id for hit in right.hits])
    return {"left": left.label, "right": right.label, "found": found}


def _table(
    sources: Sequence[Source], lanes: Sequence[dict[str, Any]]
) -> Iterator[tuple[Card, tuple[dict[str, Any] | None, ...]]]:
    """Yield a row for each chunk that a lane shows: the result's first, then those of the others."""
    cells = [
        {hit.chunk_id: {"rank": rank, "score": f"{hit.score:.3f}"} for rank, hit in enumerate(source.hits, start=1)}
        for source in sources
    ]
    listed: set[ChunkId] = set()
    for source, lane in sorted(zip(sources, lanes, strict=True), key=lambda pair: not pair[0].is_result):
        for card, hit in zip(lane["cards"], source.hits, strict=False):
            if hit.chunk_id not in listed:
                listed.add(hit.chunk_id)
                yield card, tuple(column.get(hit.chunk_id) for column in cells)
