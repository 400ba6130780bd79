"""Dropped hits with their reasons."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from corecube.scope import AccessScope
from retrieval.engine.state import Drop, DropReason
from retrieval.engine.types import ChunkId, Hit

#: Rows that one stage shows; the rest is told as a count.
MAX_ROWS: Final = 100
_STEP: Final = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
_CHUNK_ID: Final = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):(\d+)")

#: What a chunk is called, by its id; chunks outside the viewer's scope are not in it.
ChunkLabels = Mapping[ChunkId, str]


@dataclass(frozen=True, slots=True)
class DropRow:
    """A hit that a stage removed."""

    chunk_id: ChunkId
    label: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class DropList:
    """What one stage removed: the rows shown, and how many more there are."""

    rows: tuple[DropRow, ...]
    total: int
    #: Those that were not in the store any more; which they were is told nobody.
    gone: int = 0

    @property
    def gone_words(self) -> str:
        """How many were gone, and what that means: "3 gone from the store, or left out"; empty for none."""
        return f"{self.gone:,} {DropReason.STALE.label}" if self.gone else ""

    @property
    def unlisted(self) -> int:
        """Drops that have no row, and whose reason is not told either."""
        return self.total - len(self.rows) - self.gone


def chunk_label(title: str, heading_path: Iterable[str], *, source: str) -> str:
    """Return what a chunk is called in a line of text: "Runbook › Staging — Platform repo"."""
    return f"{chunk_name(title, heading_path)} — {source}"


def chunk_name(title: str, heading_path: Iterable[str]) -> str:
    """Return a chunk's title and headings: "Runbook › Staging"."""
    return _STEP.join((title, *heading_path))


def labels_of(hits: Iterable[Hit], scope: AccessScope) -> dict[ChunkId, str]:
    """Return the labels of the hits that have been read."""
    sources = {inclusion.connection.id: inclusion.connection.name for inclusion in scope.included}
    return {
        hit.chunk_id: chunk_label(hit.facts.title, hit.facts.heading_path, source=sources[hit.facts.connection_id])
        for hit in hits
        if hit.facts is not None
    }


def drop_list(drops: Iterable[Drop], labels: ChunkLabels) -> DropList:
    """Return the drops as rows. The nameless ones, and those without a label, are counted, never named."""
    dropped = tuple(drops)
    rows = tuple(
        DropRow(drop.chunk_id, labels[drop.chunk_id], drop.reason.label, readable(drop.detail, labels))
        for drop in dropped
        if not drop.is_nameless and drop.chunk_id in labels
    )
    gone = sum(drop.reason is DropReason.STALE for drop in dropped)
    return DropList(rows[:MAX_ROWS], len(dropped), gone)


def readable(detail: str, labels: ChunkLabels) -> str:
    """Return a drop's detail with titles in the place of chunk ids."""

    def label(found: re.Match[str]) -> str:
        chunk_id = ChunkId(UUID(found.group(1)), int(found.group(2)))
        return f"“{labels[chunk_id]}”" if chunk_id in labels else "another chunk"

    return _CHUNK_ID.sub(label, detail)
