"""A source item that is prepared for embedding: its fingerprint, its type, the time of its last change.

And which documents an earlier version of parsing and chunking made.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Final

from django.db.models import Count

from corecube.connectors.types import SourceItem
from corecube.models import Connection
from retrieval.ingest.preparation import PreparedText
from retrieval.models import Document
from retrieval.models.document import DocumentQuerySet

#: Increased by one when parsing, chunking or quality scoring changes its result for the same bytes.
INGEST_VERSION: Final = 8
_RAW_TYPE_CHARACTERS: Final = 120
#: Metadata keys that give the time of the last change, most reliable first.
_DATE_KEYS: Final = ("modified", "updated", "last_reviewed", "date", "created")
#: How far in the future a date may lie: clocks and time zones differ.
_MAX_CLOCK_DIFFERENCE: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A source item that is parsed and chunked, but not yet embedded."""

    item: SourceItem
    fingerprint: str
    byte_size: int
    text: PreparedText
    version: str = ""  #: The `version_mark` of the source's version; empty when the source has none.


def fingerprint(content: bytes, *, recipe: str) -> str:
    """Return the SHA-256 of the bytes and of how they become embedded chunks."""
    digest = hashlib.sha256(f"{INGEST_VERSION} {recipe}\n".encode())
    digest.update(content)
    return digest.hexdigest()


def version_mark(version: str, *, recipe: str) -> str:
    """Return the SHA-256 of the source's version of an item and of the recipe; empty without a version."""
    return fingerprint(version.encode(), recipe=f"version {recipe}") if version else ""


def raw_type(item: SourceItem) -> str:
    """Return the item's media type in the source, or else the suffix of its name, without the dot."""
    essence = item.media_type.partition(";")[0].strip().lower()
    return (essence or PurePosixPath(item.name.replace("\\", "/")).suffix.lower().lstrip("."))[:_RAW_TYPE_CHARACTERS]


def modified_at(document: PreparedDocument, *, now: datetime) -> datetime | None:
    """Return when it last changed, in UTC, by its metadata or else its source; invalid and future dates are ignored."""
    stated = (document.text.metadata[key] for key in _DATE_KEYS if key in document.text.metadata)
    dates = (*stated, document.item.modified_at)
    return next((utc for date in dates if (utc := _in_utc(date, now + _MAX_CLOCK_DIFFERENCE))), None)


def _in_utc(date: datetime | str | None, latest: datetime) -> datetime | None:
    """Return a date in UTC; None for one that is invalid, after `latest` or outside the range of `datetime`."""
    if date is None:
        return None
    try:
        date = datetime.fromisoformat(date) if isinstance(date, str) else date
        utc = (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return utc if utc <= latest else None


@dataclass(frozen=True, slots=True)
class OlderDocuments:
    """The documents of a connection that its next full sync makes again."""

    slug: str
    name: str
    version: int  #: Their ingestion version; 0 if it was not recorded.
    documents: int


def ingest_version() -> int:
    """Return the version by which syncs parse and chunk documents."""
    return INGEST_VERSION


def older_documents() -> list[OlderDocuments]:
    """Return the documents of other ingestion versions than the current one, by connection and version."""
    groups = _older().values_list("connection__slug", "connection__name", "ingest_version").annotate(Count("pk"))
    return [OlderDocuments(*group) for group in groups.order_by("connection__name", "ingest_version")]


def older_documents_of(connection: Connection) -> int:
    """Return the number of such documents in a connection."""
    return _older().filter(connection=connection).count()


def _older() -> DocumentQuerySet:
    return Document.objects.exclude(ingest_version=ingest_version())
