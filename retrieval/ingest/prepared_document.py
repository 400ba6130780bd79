"""A source item that is prepared for embedding: its fingerprint, its type and the time of its last change."""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Final

from corecube.connectors.types import SourceItem
from retrieval.ingest.preparation import PreparedText

#: Increased by one when parsing, chunking or quality scoring changes its result for the same bytes.
INGEST_VERSION: Final = 12
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
