"""What the preset `contextpack` adds to a search's state: frozen, free of Django."""

from dataclasses import dataclass
from enum import StrEnum

from retrieval.engine.types import ChunkId, Hit


class Relation(StrEnum):
    """What a chunk is to a primary hit; in the order in which they are kept."""

    #: It stands in the same section.
    PARENT = "parent"
    #: It stands right beside it, on the same page.
    SIBLING = "sibling"
    #: It stands on the page before or after.
    CROSS_PAGE = "cross_page"


@dataclass(frozen=True, slots=True)
class Relevance:
    """What a language model judged of one candidate."""

    #: By the rubric, 0 to 100.
    score: float
    #: Whether the candidate by itself answers the question.
    is_answering: bool
    #: What it rests on, in the document's words: shown with the search, never stored or logged.
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A chunk that is packed for what a primary hit is to it."""

    hit: Hit
    relation: Relation
    #: The primary hit that it stands beside; of several the best.
    primary: ChunkId

    @property
    def distance(self) -> int:
        """How many chunks it is away from its primary hit, from 1."""
        return abs(self.hit.chunk_id.ordinal - self.primary.ordinal)
