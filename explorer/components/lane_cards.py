"""The contents of lanes: cards, the lines between them, the table, and the overlap of two rankings."""

from dataclasses import dataclass

from explorer.components.snippets import Segment
from retrieval.engine.types import ChunkId


@dataclass(frozen=True, slots=True)
class Place:
    """The rank of a card's chunk in another lane."""

    lane: str
    #: The rank, or why there is none.
    text: str
    #: How the result moved it: up, down, same; empty if the other lane does not have it.
    direction: str = ""
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
    #: The last one that was returned.
    is_last: bool = False

    @property
    def is_alone(self) -> bool:
        """Whether no other lane has the chunk."""
        return not any(place.direction for place in self.places)


@dataclass(frozen=True, slots=True)
class Lane:
    """A ranking's first cards."""

    key: str
    label: str
    cards: tuple[Card, ...]
    total: int
    is_result: bool = False
    #: How many were returned; None for all.
    returned: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """The line of a chunk from one lane to the next."""

    path: str
    direction: str


@dataclass(frozen=True, slots=True)
class Gap:
    """The lines between two lanes."""

    lines: tuple[Line, ...]
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class LaneColumn:
    """A lane and the lines after it; None after the last."""

    lane: Lane
    gap: Gap | None


@dataclass(frozen=True, slots=True)
class Cell:
    """A chunk's place in a ranking."""

    rank: int
    score: str


@dataclass(frozen=True, slots=True)
class TableRow:
    """A chunk in the table view."""

    card: Card
    #: Its rank and score in each ranking; None in one without it.
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """What two rankings share, counted over all hits."""

    left: str
    right: str
    only_left: int
    both: int
    only_right: int
    jaccard: float
    rbo: float


@dataclass(frozen=True, slots=True)
class LanesPanel:
    """Rankings side by side."""

    columns: tuple[LaneColumn, ...]
    table: tuple[TableRow, ...]
    #: The overlap of the outer lanes; None unless there are two to compare.
    overlap: Overlap | None
    #: The lane that the colours of lines refer to.
    result: str
    limit: int
