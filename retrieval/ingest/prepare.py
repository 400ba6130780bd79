"""From a parsed document to chunks that wait for their vectors."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from corecube.connectors.types import SourceItem
from retrieval.context_line import in_context
from retrieval.errors import IngestError
from retrieval.ingest.chunk import chunk
from retrieval.ingest.types import ChunkDraft, ChunkLimits, ParsedDocument, TokenCounter
from retrieval.sanitise import storable

#: Raised by one whenever parsing, chunking or judging changes what it makes of the same bytes.
INGEST_VERSION: Final = 2
#: Facts that state when a document changed, the most telling first.
_DATE_KEYS: Final = ("modified", "updated", "last_reviewed", "date", "created")
#: How far ahead a date may lie: clocks and time zones differ.
_CLOCKS_DIFFER: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A document that is parsed and chunked, but not yet embedded."""

    item: SourceItem
    fingerprint: str
    byte_size: int
    title: str
    source_type: str
    metadata: Mapping[str, str]
    chunks: tuple[ChunkDraft, ...]


def fingerprint(content: bytes, *, recipe: str) -> str:
    """Return the SHA-256 of the bytes and of how they are turned into embedded chunks."""
    digest = hashlib.sha256(f"{INGEST_VERSION} {recipe}\n".encode())
    digest.update(content)
    return digest.hexdigest()


def prepare(
    item: SourceItem,
    parsed: ParsedDocument,
    *,
    fingerprint: str,
    byte_size: int,
    counter: TokenCounter,
    limits: ChunkLimits,
) -> PreparedDocument:
    """Chunk a parsed document. Raises IngestError when no text is left."""
    drafts = chunk(parsed, counter, limits)
    if not drafts:
        raise IngestError("no_text", "There is no text in the file.")
    return PreparedDocument(
        item=item,
        fingerprint=fingerprint,
        byte_size=byte_size,
        title=storable(parsed.title),
        source_type=parsed.source_type,
        metadata={storable(key): storable(value) for key, value in parsed.metadata.items()},
        chunks=tuple(_storable_draft(draft) for draft in drafts),
    )


def embedded_text(title: str, draft: ChunkDraft) -> str:
    """Return what is embedded for a chunk: a line that says where it stands, then its text."""
    return in_context(title, draft.heading_path, draft.text)


def content_hash(text: str) -> str:
    """Return the SHA-256 of a chunk's text, with white space evened out."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()


def modified_at(document: PreparedDocument, *, now: datetime) -> datetime | None:
    """Return when the document last changed, in UTC: its own date if it states one, else the source's.

    A date that no calendar here can hold, or that lies ahead of `now` by more than a day, is passed over.
    """
    stated = (document.metadata[key] for key in _DATE_KEYS if key in document.metadata)
    dates = (*map(_date, stated), document.item.modified_at)
    return next((moment for date in dates if (moment := _moment(date, now + _CLOCKS_DIFFER))), None)


def _date(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _moment(date: datetime | None, latest: datetime) -> datetime | None:
    """Return a date in UTC, or None for one after `latest` or beyond what can be represented there."""
    if date is None:
        return None
    try:
        moment = (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if moment <= latest else None


def _storable_draft(draft: ChunkDraft) -> ChunkDraft:
    return ChunkDraft(
        ordinal=draft.ordinal,
        text=storable(draft.text),
        heading_path=tuple(storable(heading) for heading in draft.heading_path),
        token_count=draft.token_count,
        page_start=draft.page_start,
        page_end=draft.page_end,
    )
