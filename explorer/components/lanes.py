"""Lanes: rankings side by side, with a line for each chunk that stands in two of them.

Rows have a fixed height, so that the lines are numbers in a drawing and no script has to measure anything.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from corecube.scope import AccessScope
from explorer import wording
from explorer.components.lane_cards import (
    Card,
    Cell,
    Gap,
    Lane,
    LaneColumn,
    LanesPanel,
    Line,
    Overlap,
    Place,
    TableRow,
)
from explorer.components.snippets import StemIn, highlight, snippet
from retrieval.engine.state import DropReason
from retrieval.engine.types import ChunkId, Hit, Ranking
from retrieval.ranking.comparison import Direction, Move, compare
from retrieval.search.outcome import SearchOutcome

#: Cards that a lane shows.
MAX_CARDS: Final = 20
#: Letters of a card's snippet, about two lines.
_SNIPPET: Final = 120
#: Units of the drawing: its width, and the height of one row.
_WIDTH: Final = 100
_ROW: Final = 100
#: The result's own key.
RESULT: Final = "result"
_TWO: Final = 2
_NOWHERE: Final = "\N{EN DASH}"
_ARROWS: Final = {Direction.UP: "↑", Direction.DOWN: "↓", Direction.SAME: "="}
#: The tokens of connections' colours.
_HUES: Final = ("indigo", "teal", "amber", "violet", "green", "rose", "olive", "slate")

#: A ranking's places, from 1.
Ranks = Mapping[ChunkId, int]


@dataclass(frozen=True, slots=True)
class Source:
    """What a lane is made of."""

    key: str
    label: str
    #: The whole ranking, best first.
    hits: Ranking
    #: Lines are coloured by how this lane changes what the one beside it has.
    is_result: bool = False
    #: How many were returned; None for all.
    returned: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What the cards' texts are made of."""

    #: The chunks that may be shown, read from the store.
    read: Mapping[ChunkId, Hit]
    scope: AccessScope
    stem_in: StemIn
    #: Why a chunk left the search.
    reasons: Mapping[ChunkId, str]


def lane_sources(outcome: SearchOutcome) -> tuple[Source, ...]:
    """Return a search's lanes: its first leg, the result, the other legs. What access stopped is in none of them."""
    state = outcome.state
    stopped = {drop.chunk_id for drop in state.drops if drop.reason is DropReason.ACCESS}
    legs = [
        Source(leg, wording.lane_label(leg), tuple(hit for hit in ranking if hit.chunk_id not in stopped))
        for leg, ranking in state.rankings.items()
    ]
    hits = state.hits if state.access_checked else ()
    label = "Hybrid" if len(legs) > 1 else "Result"
    return (*legs[:1], Source(RESULT, label, hits, is_result=True, returned=state.top_k), *legs[1:])


def shown_hits(sources: Sequence[Source]) -> dict[ChunkId, Hit]:
    """Return the hits that the lanes have cards for; of a chunk in several lanes, the one that has its facts."""
    found: dict[ChunkId, Hit] = {}
    for hit in (hit for source in sources for hit in source.hits[:MAX_CARDS]):
        if hit.chunk_id not in found or found[hit.chunk_id].facts is None:
            found[hit.chunk_id] = hit
    return found


def drop_words(outcome: SearchOutcome) -> dict[ChunkId, str]:
    """Return why each chunk left the search, in a word or two; nothing of those that are not named."""
    drops = (it for it in outcome.state.drops if not it.is_nameless and it.reason is not DropReason.TOP_K)
    return {drop.chunk_id: drop.reason.label for drop in drops}


def lanes_panel(sources: Sequence[Source], facts: Facts) -> LanesPanel:
    """Return the lanes of some rankings, in their order."""
    ranks = {source.key: _ranks(source) for source in sources}
    # A chunk stands in several lanes, and to choose its snippet takes a while.
    faces = {chunk_id: face(hit, facts) for chunk_id, hit in facts.read.items()}
    lanes = [_lane(source, sources, ranks, facts.reasons, faces) for source in sources]
    height = max((len(lane.cards) for lane in lanes), default=0) * _ROW
    gaps = [Gap(tuple(_lines(left, right, ranks)), _WIDTH, height) for left, right in pairwise(sources)]
    return LanesPanel(
        columns=tuple(LaneColumn(lane, gap) for lane, gap in zip(lanes, [*gaps, None], strict=True)),
        table=tuple(_table(sources, lanes)),
        overlap=_overlap(sources),
        result=next((source.label for source in sources if source.is_result), ""),
        limit=MAX_CARDS,
    )


def _ranks(source: Source) -> Ranks:
    return {hit.chunk_id: rank for rank, hit in enumerate(source.hits, start=1)}


def _lane(
    source: Source,
    sources: Sequence[Source],
    ranks: Mapping[str, Ranks],
    reasons: Mapping[ChunkId, str],
    faces: Mapping[ChunkId, Card],
) -> Lane:
    """Return one lane, its cards told where the lanes are that it is compared with: a leg with the result."""
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
    return Lane(source.key, source.label, tuple(cards), len(source.hits), source.is_result, returned)


def _place(source: Source, rank: int, other: Source, there: int | None) -> Place:
    """Return where another lane has a chunk; the arrow says how the result moved it, whichever of the two that is."""
    if there is None:
        return Place(other.label, _NOWHERE)
    move = Move("", there, rank) if source.is_result else Move("", rank, there)
    return Place(other.label, str(there), move.direction, _ARROWS[move.direction])


def face(hit: Hit, facts: Facts) -> Card:
    """Return what every card of a chunk shows; its place and score differ by lane."""
    chunk = hit.chunk
    connection = facts.scope.inclusion(chunk.connection_id).connection
    stem = facts.stem_in(connection.language)
    return Card(
        rank=0,
        chunk_id=hit.chunk_id,
        score="",
        title=highlight(chunk.title, [match.lexeme for match in hit.matches], stem=stem),
        trail=chunk.heading_path,
        snippet=snippet(chunk.text, hit.matches, stem=stem, characters=_SNIPPET),
        source=connection.name,
        hue=hue_of(connection.id),
    )


def hue_of(connection_id: int) -> str:
    """Return a connection's hue, the same on every page."""
    return _HUES[connection_id % len(_HUES)]


def _lines(left: Source, right: Source, ranks: Mapping[str, Ranks]) -> Iterator[Line]:
    """Yield a curve for each chunk that both lanes show, coloured by where the result put it."""
    before, after = (right, left) if left.is_result else (left, right)
    for hit in left.hits[:MAX_CARDS]:
        rank, there = ranks[left.key][hit.chunk_id], ranks[right.key].get(hit.chunk_id)
        if there is not None and there <= MAX_CARDS:
            move = Move("", ranks[before.key][hit.chunk_id], ranks[after.key][hit.chunk_id])
            yield Line(_curve(rank, there), move.direction)


def _curve(rank: int, there: int) -> str:
    """Return an SVG path from the middle of one row to that of another."""
    start, end, middle = rank * _ROW - _ROW // 2, there * _ROW - _ROW // 2, _WIDTH // 2
    return f"M0 {start}C{middle} {start} {middle} {end} {_WIDTH} {end}"


def _overlap(sources: Sequence[Source]) -> Overlap | None:
    """Return what the two legs share; of two lanes, what these do."""
    pair = sources if len(sources) == _TWO else [source for source in sources if not source.is_result]
    if len(pair) != _TWO:
        return None
    left, right = pair
    found = compare([hit.chunk_id for hit in left.hits], [hit.chunk_id for hit in right.hits])
    return Overlap(
        left.label,
        right.label,
        len(found.only_left),
        len(found.both),
        len(found.only_right),
        found.jaccard,
        found.rbo,
    )


def _table(sources: Sequence[Source], lanes: Sequence[Lane]) -> Iterator[TableRow]:
    """Yield a row for each chunk that a lane shows: the result's first, in its order, then those of the others."""
    cells = [
        {hit.chunk_id: Cell(rank, f"{hit.score:.3f}") for rank, hit in enumerate(source.hits, start=1)}
        for source in sources
    ]
    told: set[ChunkId] = set()
    for source, lane in sorted(zip(sources, lanes, strict=True), key=lambda pair: not pair[0].is_result):
        for card, hit in zip(lane.cards, source.hits, strict=False):
            if hit.chunk_id not in told:
                told.add(hit.chunk_id)
                yield TableRow(card, tuple(column.get(hit.chunk_id) for column in cells))
