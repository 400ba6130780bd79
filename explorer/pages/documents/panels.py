"""The list of documents."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from explorer import wording
from retrieval.models import Document

#: Rows on a page, and documents that can be paged to; a narrower search reaches the others.
PER_PAGE: Final = 50
MAX_LISTED: Final = 10_000
#: Digits of a page's number; more cannot be one.
_MAX_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document of the list."""

    id: UUID
    title: str
    #: What its source calls it.
    external_id: str
    connection: str
    source_type: str
    chunks: int
    modified: str
    synced: str


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """One page of the list."""

    rows: tuple[DocumentRow, ...]
    #: Documents in all, as far as they are counted.
    total: int
    number: int

    @property
    def is_capped(self) -> bool:
        """Whether there are more than can be paged to."""
        return self.total > MAX_LISTED

    @property
    def listed(self) -> int:
        """Documents that can be paged to."""
        return min(self.total, MAX_LISTED)

    @property
    def first(self) -> int:
        """The place of the first row, from 1; 0 without one."""
        return (self.number - 1) * PER_PAGE + 1 if self.rows else 0

    @property
    def last(self) -> int:
        """The place of the last row."""
        return self.first + len(self.rows) - 1 if self.rows else 0

    @property
    def before(self) -> int | None:
        """The page before this one."""
        return self.number - 1 if self.number > 1 else None

    @property
    def after(self) -> int | None:
        """The page after this one."""
        return self.number + 1 if self.last < self.listed else None


def page_number(asked: str, total: int) -> int:
    """Return the page that an address asks for, from 1, as far as there are pages."""
    last = max(1, -(-min(total, MAX_LISTED) // PER_PAGE))
    number = int(asked) if asked.isdecimal() and len(asked) <= _MAX_DIGITS else 1
    return max(1, min(number, last))


def document_row(document: Document, *, chunks: int, now: datetime) -> DocumentRow:
    """Return the row of a document that was read with its connection."""
    return DocumentRow(
        id=document.pk,
        title=document.title,
        external_id=document.external_id,
        connection=document.connection.name,
        source_type=document.source_type,
        chunks=chunks,
        modified=wording.ago(document.modified_at, now) if document.modified_at else "",
        synced=wording.ago(document.synced_at, now),
    )
