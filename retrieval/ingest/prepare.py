"""Documents whose chunks wait for their vectors: what tells them apart, and when they changed."""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Final

from corecube.connectors.types import SourceItem
from retrieval.ingest.preparation import PreparedText
from retrieval.text.context_line import in_context
from retrieval.text.document import ChunkDraft

#: Raised by one whenever parsing, chunking or judging changes what it makes of the same bytes.
INGEST_VERSION: Final = 6
#: What the column holds.
_RAW_TYPE_CHARACTERS: Final = 120
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
    text: PreparedText
    #: What `version_mark` makes of the source's own version; empty where it tells none.
    version: str = ""

    @property
    def drafts(self) -> tuple[ChunkDraft, ...]:
        """Its chunks, without what is worked out from them."""
        return tuple(chunk.draft for chunk in self.text.chunks)


def fingerprint(content: bytes, *, recipe: str) -> str:
    """Return the SHA-256 of the bytes and of how they are turned into embedded chunks."""
    digest = hashlib.sha256(f"{INGEST_VERSION} {recipe}\n".encode())
    digest.update(content)
    return digest.hexdigest()


def version_mark(version: str, *, recipe: str) -> str:
    """Return the SHA-256 of a source's own version of an item and of the recipe; empty where it tells none."""
    return fingerprint(version.encode(), recipe=f"version {recipe}") if version else ""


def embedded_text(title: str, draft: ChunkDraft) -> str:
    """Return what is embedded for a chunk: a line that says where it stands, then its text."""
    return in_context(title, draft.heading_path, draft.text, draft.context_line)


def raw_type(item: SourceItem) -> str:
    """Return what the source says that an item is: its media type, else the suffix of its name, without the dot."""
    essence = item.media_type.partition(";")[0].strip().lower()
    return (essence or PurePosixPath(item.name.replace("\\", "/")).suffix.lower().lstrip("."))[:_RAW_TYPE_CHARACTERS]


def modified_at(document: PreparedDocument, *, now: datetime) -> datetime | None:
    """Return when the document last changed, in UTC: its own date if it states one, else the source's.

    A date that no calendar here can hold, or that lies ahead of `now` by more than a day, is passed over.
    """
    stated = (document.text.metadata[key] for key in _DATE_KEYS if key in document.text.metadata)
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
