"""Dropped hits with their reasons, and labels of chunks."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from corecube.scope import AccessScope
from retrieval.engine.state import Drop, DropReason
from retrieval.engine.types import ChunkId, Hit
from retrieval.models import Chunk
from retrieval.search.outcome import SearchOutcome

MAX_ROWS: Final = 100
_STEP: Final = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
_CHUNK_ID: Final = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):(\d+)")

ChunkLabels = Mapping[ChunkId, str]  #: Labels of chunks by id, without those outside the viewer's scope.


@dataclass(frozen=True, slots=True)
class DropRow:
    """A hit that a stage removed."""

    chunk_id: ChunkId
    label: str
    reason: str
    detail: str


def chunk_label(title: str, heading_path: Iterable[str], *, source: str) -> str:
    """Return a chunk's label: "Runbook › Staging — Platform repo"."""
    return f"{chunk_name(title, heading_path)} — {source}"


def chunk_name(title: str, heading_path: Iterable[str]) -> str:
    """Return a chunk's title and headings: "Runbook › Staging"."""
    return _STEP.join((title, *heading_path))


def labels_of(hits: Iterable[Hit], scope: AccessScope) -> dict[ChunkId, str]:
    """Return the labels of the hits with facts."""
    sources = {inclusion.connection.id: inclusion.connection.name for inclusion in scope.included}
    return {
        hit.chunk_id: chunk_label(hit.facts.title, hit.facts.heading_path, source=sources[hit.facts.connection_id])
        for hit in hits
        if hit.facts is not None
    }


def chunk_labels(outcome: SearchOutcome) -> dict[ChunkId, str]:
    """Return the labels of a search's chunks: of the pool, and of dropped hits.

    Chunks that were deleted or are out of scope have none.
    """
    scope = outcome.state.scope
    labels = labels_of(outcome.state.hits, scope)
    unknown = {drop.chunk_id for drop in outcome.state.drops} - labels.keys()
    if not unknown:
        return labels
    sources = {inclusion.connection.id: inclusion.connection.name for inclusion in scope.included}
    rows = Chunk.objects.filter(
        document_id__in={chunk_id.document_id for chunk_id in unknown}, connection_id__in=sources
    ).values_list("document_id", "ordinal", "document__title", "heading_path", "connection_id")
    found = {
        ChunkId(document, ordinal): chunk_label(title, path, source=sources[connection_id])
        for document, ordinal, title, path, connection_id in rows
    }
    return labels | {chunk_id: label for chunk_id, label in found.items() if chunk_id in unknown}


def drop_list(drops: Iterable[Drop], labels: ChunkLabels) -> dict[str, Any]:
    """Return the drops as rows. Nameless ones and those without a label are only counted."""
    dropped = tuple(drops)
    rows = tuple(
        DropRow(drop.chunk_id, labels[drop.chunk_id], drop.reason.label, readable(drop.detail, labels))
        for drop in dropped
        if not drop.is_nameless and drop.chunk_id in labels
    )
    gone = sum(drop.reason is DropReason.STALE for drop in dropped)
    shown = rows[:MAX_ROWS]
    return {
        "rows": shown,
        "total": len(dropped),
        "gone": gone,
        # Those that were no longer in the store, with the reason; they are never named.
        "gone_words": f"{gone:,} {DropReason.STALE.label}" if gone else "",
        # Empty where all have a row or a reason.
        "listed": f"{len(shown):,} of {len(dropped):,} listed" if len(shown) + gone < len(dropped) else "",
    }


def readable(detail: str, labels: ChunkLabels) -> str:
    """Return a drop's detail with chunk ids replaced by labels."""

    def label(found: re.Match[str]) -> str:
        chunk_id = ChunkId(UUID(found.group(1)), int(found.group(2)))
        return f"“{labels[chunk_id]}”" if chunk_id in labels else "another chunk"

    return _CHUNK_ID.sub(label, detail)
