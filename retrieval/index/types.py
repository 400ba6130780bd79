"""Results of the index other than hits; without Django."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from retrieval.engine.types import ChunkId, Hit


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedRange:
    """A part of a document, found by its headings: consecutive chunks."""

    document_id: UUID
    heading_path: tuple[str, ...]
    #: First and last ordinal of its chunks.
    start: int
    end: int
    #: How well its headings fit the query, above 0.
    score: float


class Relation(StrEnum):
    """The relation of a chunk to a primary hit, in order of priority."""

    #: In the same section.
    PARENT = "parent"
    #: Directly adjacent, on the same page.
    SIBLING = "sibling"
    #: On the previous or next page.
    CROSS_PAGE = "cross_page"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A chunk that is packed for what a primary hit is to it."""

    hit: Hit
    relation: Relation
    #: The primary hit that it belongs to; of several the best.
    primary: ChunkId

    @property
    def distance(self) -> int:
        """How many chunks it is away from its primary hit, from 1."""
        return abs(self.hit.chunk_id.ordinal - self.primary.ordinal)


class Place(NamedTuple):
    """An exact rank in the complete scope, from 1, and the number of ranked chunks."""

    rank: int
    among: int


@dataclass(frozen=True, slots=True)
class ChunkProbe:
    """A chunk's exact signals, whether or not a leg returned it."""

    #: None without a vector of the query or of the chunk.
    cosine: float | None
    fulltext: float
    #: Whether it matches the tsquery of the full-text leg.
    is_match: bool


@dataclass(frozen=True, slots=True)
class DocumentProbe:
    """What the store knows of a document for one query."""

    chunks: Mapping[ChunkId, ChunkProbe]
    #: Chunks in all, and those with a vector in the searched index.
    count: int
    vectors: int
    #: The best chunk by cosine, and by full text; None where no chunk has the signal.
    nearest: ChunkId | None
    wordiest: ChunkId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkTexts:
    """What the index reads of a chunk."""

    document_id: UUID
    ordinal: int
    connection_id: int
    #: PostgreSQL's name for the language that its connection's documents are read in.
    language: str
    title: str
    heading_path: tuple[str, ...]
    text: str
    questions: tuple[str, ...]
    #: As the source says; None where it says nothing.
    modified_at: datetime | None
    #: Empty for what no agent remembered.
    memory_kind: str = ""
    memory_project: str = ""
    source_type: str = ""
    #: Kinds of content in it (`retrieval.text.traits`).
    hints: tuple[str, ...] = ()
    #: How much of it is content and not boilerplate, 0 to 1.
    quality: float = 1.0
