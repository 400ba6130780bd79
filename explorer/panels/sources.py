"""Sources: the connections, where each stands, and what their syncs did."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from corecube.models import Connection
from explorer import wording
from explorer.panels.bars import percent
from retrieval.models import Sync

_TONES: Final[Mapping[str, str]] = {
    Sync.Status.QUEUED: "",
    Sync.Status.RUNNING: "accent",
    Sync.Status.DONE: "good",
    Sync.Status.FAILED: "bad",
    Sync.Status.STOPPED: "warn",
}


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A connection in the list."""

    slug: str
    name: str
    kind: str
    compartment: str
    sensitivity: str
    trust: str
    enabled: bool
    documents: int
    chunks: int
    #: "3 days ago", or "never".
    synced: str
    sync: "SyncRow | None"
    problems: int


@dataclass(frozen=True, slots=True)
class SyncRow:
    """One sync."""

    status: str
    tone: str
    #: When it began, or was queued.
    since: str
    seconds: str
    seen: int
    added: int
    changed: int
    unchanged: int
    failed: int
    deleted: int
    chunks: int
    message: str
    #: Percent of the documents that the store held before, as a guess of how far it is; None where unknown.
    progress: float | None
    #: Queued or running, so that the page looks again.
    is_open: bool
    #: Waiting for a person's word to delete what is gone from the source.
    is_stopped: bool


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """What is stored and known of the connections, by connection id."""

    documents: Mapping[int, int]
    chunks: Mapping[int, int]
    problems: Mapping[int, int]
    syncs: Mapping[int, Sync]


def source_row(connection: Connection, counts: SourceCounts, now: datetime) -> SourceRow:
    """Return a connection's row."""
    facts = connection.facts()
    sync = counts.syncs.get(connection.pk)
    documents = counts.documents.get(connection.pk, 0)
    return SourceRow(
        slug=connection.slug,
        name=connection.name,
        kind=connection.kind,
        compartment=facts.compartment,
        sensitivity=wording.level(facts.sensitivity),
        trust=wording.level(facts.trust),
        enabled=connection.enabled,
        documents=documents,
        chunks=counts.chunks.get(connection.pk, 0),
        synced=wording.ago(connection.last_synced_at, now) if connection.last_synced_at else "never",
        sync=sync_row(sync, now, known=documents) if sync else None,
        problems=counts.problems.get(connection.pk, 0),
    )


def sync_row(sync: Sync, now: datetime, *, known: int) -> SyncRow:
    """Return a sync's row; `known` documents are stored, which its progress is guessed from."""
    is_open = sync.status in {Sync.Status.QUEUED, Sync.Status.RUNNING}
    return SyncRow(
        status=sync.status,
        tone=_TONES[sync.status],
        since=wording.ago(sync.started_at or sync.queued_at, now),
        seconds=_seconds(sync, now),
        seen=sync.seen,
        added=sync.added,
        changed=sync.changed,
        unchanged=sync.unchanged,
        failed=sync.failed,
        deleted=sync.deleted,
        chunks=sync.chunks,
        message=sync.message,
        progress=round(percent(sync.seen, known), 1) if is_open and known and sync.unchanged else None,
        is_open=is_open,
        is_stopped=sync.status == Sync.Status.STOPPED,
    )


def _seconds(sync: Sync, now: datetime) -> str:
    """Return how long a sync took, or has taken: "8.2 s", "3 min 5 s"; empty before it starts."""
    if sync.started_at is None:
        return ""
    seconds = ((sync.finished_at or now) - sync.started_at).total_seconds()
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
