"""What the lanes show: cards, the drawing between them, the table, and what two rankings share."""

from dataclasses import dataclass

from explorer.components.snippets import Segment
from retrieval.engine.types import ChunkId


@dataclass(frozen=True, slots=True)
class Place:
    """Where another lane has a card's chunk."""

    lane: str
    #: The rank there in figures, or why there is none.
    text: str
    #: How the result moved it: up, down, same; empty where the other lane does not have it.
    direction: str = ""
    arrow: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A chunk in a lane."""

    rank: int
    #: None for one that its reader may not see, or that is gone: only its rank is told.
    chunk_id: ChunkId | None
    score: str
    title: tuple[Segment, ...] = ()
    trail: tuple[str, ...] = ()
    snippet: tuple[Segment, ...] = ()
    source: str = ""
    hue: str = ""
    places: tuple[Place, ...] = ()
    #: The last of those that were returned.
    is_last: bool = False

    @property
    def is_alone(self) -> bool:
        """Whether no other lane has it."""
        return not any(place.direction for place in self.places)


@dataclass(frozen=True, slots=True)
class Lane:
    """A ranking's first cards."""

    key: str
    label: str
    cards: tuple[Card, ...]
    #: Hits of the whole ranking.
    total: int
    is_result: bool = False
    #: How many of them were returned; None where all were.
    returned: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A chunk's way from one lane to the next."""

    path: str
    direction: str


@dataclass(frozen=True, slots=True)
class Gap:
    """The drawing between two lanes."""

    lines: tuple[Line, ...]
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class LaneColumn:
    """A lane and the drawing after it; None after the last."""

    lane: Lane
    gap: Gap | None


@dataclass(frozen=True, slots=True)
class Cell:
    """Where a ranking has a chunk."""

    rank: int
    score: str


@dataclass(frozen=True, slots=True)
class TableRow:
    """A chunk in the table view."""

    card: Card
    #: Its rank and score in each whole ranking; None where one does not have it.
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """What two rankings share, all their hits counted."""

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
    #: How alike the outer lanes are; None where there are not two to compare.
    overlap: Overlap | None
    #: The lane whose order the colours of the lines speak of.
    result: str
    #: Cards that a lane shows at most.
    limit: int
