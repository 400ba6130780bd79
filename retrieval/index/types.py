"""Results of the index other than hits; without Django."""

from collections.abc import Mapping, Sequence
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
    start: int  #: First and last ordinal of its chunks.
    end: int
    score: float  #: How well its headings fit the query, above 0.


class Relation(StrEnum):
    """The relation of a chunk to a primary hit, in order of priority."""

    PARENT = "parent"  #: In the same section.
    SIBLING = "sibling"  #: Directly adjacent, on the same page.
    CROSS_PAGE = "cross_page"  #: On the previous or next page.


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A chunk that is packed for what a primary hit is to it."""

    hit: Hit
    relation: Relation
    primary: ChunkId  #: The primary hit that it belongs to; of several the best.

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

    cosine: float | None  #: None without a vector of the query or of the chunk.
    fulltext: float
    is_match: bool  #: Whether it matches the tsquery of the full-text leg.


@dataclass(frozen=True, slots=True)
class DocumentProbe:
    """What the store knows of a document for one query."""

    chunks: Mapping[ChunkId, ChunkProbe]
    count: int  #: Chunks in all, and those with a vector in the searched index.
    vectors: int
    nearest: ChunkId | None  #: The best chunk by cosine, and by full text; None where no chunk has the signal.
    wordiest: ChunkId | None


@dataclass(frozen=True, slots=True)
class ChunkTexts:
    """What the index reads of a chunk: a language, and the columns of `chunk_texts.sql` in their order."""

    language: str  #: PostgreSQL's name for the language that its connection's documents are read in.
    document_id: UUID
    ordinal: int
    connection_id: int
    title: str
    heading_path: Sequence[str]
    text: str
    questions: Sequence[str]
    modified_at: datetime | None  #: As the source says; None where it says nothing.
    memory_kind: str = ""  #: Empty for what no agent remembered.
    memory_project: str = ""
    source_type: str = ""
    hints: Sequence[str] = ()  #: Kinds of content in it (`retrieval.text.traits`).
    quality: float = 1.0  #: How much of it is content and not boilerplate, 0 to 1.
