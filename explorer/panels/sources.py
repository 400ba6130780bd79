"""Sources: the connections, where each stands, and what their syncs did."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from corecube.models import Connection
from explorer import wording
from explorer.panels.bars import percent
from retrieval.ingest.jobs import STALLED, JobState
from retrieval.models import Sync

_STAGES: Final = ("parsing", "embedding", "storing", "queued", "failed", "gone")
_TONES: Final[Mapping[str, str]] = {
    Sync.Status.QUEUED: "",
    Sync.Status.RUNNING: "accent",
    Sync.Status.DONE: "good",
    Sync.Status.FAILED: "bad",
    Sync.Status.STOPPED: "warn",
    Sync.Status.CANCELLED: "",
    STALLED: "bad",
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

    id: UUID
    #: Slug and name of its connection.
    slug: str
    source: str
    #: Empty for an ordinary sync, else "retry" or "dry run".
    kind: str
    #: queued, running, stalled, done ...
    status: str
    #: What a running one is at: "listing", "3 parsing, 40 embedding, 200 queued".
    stage: str
    #: "4.1 documents/s, 12.0 chunks/s"; empty before there is anything to count.
    rate: str
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
    #: Failed items that can be tried again.
    retryable: int


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """What is stored and known of the connections, by connection id."""

    documents: Mapping[int, int]
    chunks: Mapping[int, int]
    problems: Mapping[int, int]
    #: The latest sync of each.
    syncs: Mapping[int, JobState]


def source_row(connection: Connection, counts: SourceCounts, now: datetime) -> SourceRow:
    """Return a connection's row."""
    facts = connection.facts()
    job = counts.syncs.get(connection.pk)
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
        sync=sync_row(job, now, known=documents) if job else None,
        problems=counts.problems.get(connection.pk, 0),
    )


def sync_row(job: JobState, now: datetime, *, known: int) -> SyncRow:
    """Return a sync's row; `known` documents are stored, which its progress is guessed from while it is listed."""
    sync = job.sync
    is_open = sync.status in {Sync.Status.QUEUED, Sync.Status.RUNNING}
    return SyncRow(
        id=sync.pk,
        slug=sync.connection.slug,
        source=sync.connection.name,
        kind="" if sync.kind == Sync.Kind.FULL else sync.get_kind_display().lower(),
        status=job.state,
        tone=_TONES[job.state],
        stage=_stage(job),
        rate=_rate(job),
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
        progress=_progress(sync, known) if is_open else None,
        is_open=is_open,
        is_stopped=sync.status == Sync.Status.STOPPED,
        retryable=job.retryable,
    )


def _stage(job: JobState) -> str:
    """Return what a running sync is at, with the items at each stage."""
    if job.sync.status != Sync.Status.RUNNING:
        return ""
    items = ", ".join(f"{job.items[name]} {name}" for name in _STAGES if name in job.items)
    return items if job.sync.stage == Sync.Stage.WORKING and items else ": ".join(filter(None, (job.sync.stage, items)))


def _rate(job: JobState) -> str:
    if not job.documents_per_second:
        return ""
    return f"{job.documents_per_second:.1f} documents/s, {job.chunks_per_second:.1f} chunks/s"


def _progress(sync: Sync, known: int) -> float | None:
    """Return percent: of what was listed, once that is all; before, of what the store holds, as a guess."""
    if sync.listed_at is not None and sync.seen:
        return round(percent(sync.added + sync.changed + sync.unchanged + sync.failed, sync.seen), 1)
    return round(percent(sync.seen, known), 1) if known and sync.unchanged else None


def _seconds(sync: Sync, now: datetime) -> str:
    """Return how long a sync took, or has taken: "8.2 s", "3 min 5 s"; empty before it starts."""
    if sync.started_at is None:
        return ""
    seconds = ((sync.finished_at or now) - sync.started_at).total_seconds()
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
