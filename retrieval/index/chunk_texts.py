"""What the BM25 index reads of a chunk. No Django."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


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
