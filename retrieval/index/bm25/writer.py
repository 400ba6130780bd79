"""Writing chunks to a build of the BM25 index. No Django."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from tantivy import Document, Index, IndexWriter

from retrieval.index.bm25 import schema
from retrieval.index.bm25.spelling import humps, spellings
from retrieval.index.types import ChunkTexts

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HALF: Final = 2**64
#: Memory that chunks are gathered in before they become a segment, in bytes for each thread.
_HEAP: Final = 48 * 2**20


@dataclass(slots=True)
class Writer:
    """The one writer of a build. What was not committed is gone when it ends; a context manager."""

    build: Path
    language: str
    threads: int = 1
    _writer: IndexWriter = field(init=False)

    def __post_init__(self) -> None:
        """Open the build, which becomes an index when it is empty."""
        index = schema.prepare(Index(schema.schema(), path=str(self.build)), self.language)
        self._writer = index.writer(_HEAP * self.threads, self.threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until segments that are being merged are merged, and let another writer in."""
        if error is not None:
            self._writer.rollback()
        self._writer.wait_merging_threads()

    def replace(self, documents: Iterable[UUID], chunks: Iterable[ChunkTexts]) -> None:
        """Take out all that is there of these documents, and put these chunks in."""
        for document in documents:
            self._writer.delete_documents_by_term(schema.DOCUMENT, document.hex)
        self.add(chunks)

    def add(self, chunks: Iterable[ChunkTexts]) -> int:
        """Put chunks in; return how many."""
        count = 0
        for count, chunk in enumerate(chunks, start=1):  # noqa: B007 -- counts
            self._writer.add_document(_entry(chunk, self.language))
        return count

    def commit(self, position: int) -> None:
        """Let searches see what was written, with the transaction up to which it follows the database: both or none."""
        self._writer.delete_documents_by_term(schema.MARK, schema.POSITION)
        mark = Document()
        mark.add_text(schema.MARK, schema.POSITION)
        mark.add_unsigned(schema.POSITION, position)
        self._writer.add_document(mark)
        self._writer.commit()


def microseconds(moment: datetime) -> int:
    """Return the microseconds from 1970 to a moment."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def fingerprint(chunk: ChunkTexts) -> int:
    """Return a hash of all that the index reads of a chunk, 64 bits."""
    return int.from_bytes(blake2b(repr(chunk).encode(), digest_size=8).digest())


def _entry(chunk: ChunkTexts, language: str) -> Document:
    entry = Document()
    entry.add_text(schema.DOCUMENT, chunk.document_id.hex)
    entry.add_unsigned(schema.HIGH, chunk.document_id.int // _HALF)
    entry.add_unsigned(schema.LOW, chunk.document_id.int % _HALF)
    entry.add_unsigned(schema.ORDINAL, chunk.ordinal)
    entry.add_unsigned(schema.CONNECTION, chunk.connection_id)
    changed = schema.ALWAYS if chunk.modified_at is None else microseconds(chunk.modified_at)
    entry.add_integer(schema.CHANGED, changed)
    entry.add_text(schema.MEMORY_KIND, chunk.memory_kind or schema.NONE)
    entry.add_text(schema.MEMORY_PROJECT, chunk.memory_project or schema.NONE)
    entry.add_text(schema.SOURCE_TYPE, chunk.source_type)
    for hint in chunk.hints:
        entry.add_text(schema.HINTS, hint)
    entry.add_float(schema.QUALITY, chunk.quality)
    entry.add_unsigned(schema.FINGERPRINT, fingerprint(chunk))
    _add_texts(entry, chunk, language)
    return entry


def _add_texts(entry: Document, chunk: ChunkTexts, language: str) -> None:
    """Add the chunk's texts, each as a separate value, so that no phrase reaches from one into the next."""
    said = (chunk.title, *chunk.heading_path, chunk.text)
    whole = "\n".join(said)
    values = [*said, " ".join(humps(whole))]
    if chunk.language == language:
        entry.add_text(schema.TITLE, chunk.title)
        for field_name, texts in (
            (schema.BODY, values),
            (schema.HEADING, chunk.heading_path),
            (schema.QUESTIONS, chunk.questions),
        ):
            for text in filter(None, texts):
                entry.add_text(field_name, text)
    else:
        for text in filter(None, (*values, *chunk.questions)):
            entry.add_text(schema.PLAIN, text)
    if names := spellings(whole):
        entry.add_text(schema.EXACT, " ".join(names))
