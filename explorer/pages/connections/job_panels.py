"""Jobs: what each sync is at, how fast, what it waits for and what it did."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from explorer import wording
from explorer.components.bars import percent
from explorer.wording.configuration import STAGE_LABELS, duration, time_left
from retrieval.ingest.jobs import STALLED, JobState
from retrieval.ingest.waiting import Reason, Wait
from retrieval.models import Sync, SyncItem

#: Items at these are still to be done.
_OPEN_STAGES: Final = ("parsing", "embedding", "storing", "queued")
_STAGES: Final = (*_OPEN_STAGES, "failed", "gone")
_TONES: Final[Mapping[str, str]] = {
    Sync.Status.QUEUED: "",
    Sync.Status.RUNNING: "accent",
    Sync.Status.DONE: "good",
    Sync.Status.FAILED: "bad",
    Sync.Status.STOPPED: "warn",
    Sync.Status.CANCELLING: "",
    Sync.Status.CANCELLED: "",
    STALLED: "bad",
}
_ESTIMATING: Final = "estimating the time left"
_LOOKS: Final[Mapping[str, str]] = {
    Sync.Kind.FULL: "Looks at everything in the source.",
    Sync.Kind.CHANGES: "Looks only at what changed in the source since the sync before; what was deleted there goes"
    " with the next look at everything.",
    Sync.Kind.RETRY: "Takes up only what failed before.",
    Sync.Kind.DRY_RUN: "Looks at everything in the source, and stores nothing of it.",
}
_WAITS: Final[Mapping[Reason, str]] = {
    Reason.DISABLED: "Waits until the connection is enabled.",
    Reason.SAME_CONNECTION: "Waits for the other sync of this connection; one runs at a time.",
    Reason.NO_WORKER: "No worker has looked for it lately; is one running?",
}


@dataclass(frozen=True, slots=True)
class SyncRow:
    """One sync."""

    id: UUID
    #: Slug and name of its connection.
    slug: str
    connection_name: str
    #: Empty for an ordinary sync, else "changes", "retry" or "dry run".
    kind: str
    #: How much of its source it looks at, as a sentence.
    looks: str
    #: queued, running, stalled, done ...
    status: str
    #: The same in words: "done with 4 problems".
    label: str
    #: What a running one is at: "listing", "3 parsing, 40 embedding (120 of 256 chunks), 200 queued".
    stage: str
    #: "4.1 documents/s, 12.0 chunks/s"; empty before there is anything to count.
    rate: str
    #: "about 4 min left"; "estimating the time left" while its pace does not tell yet; empty once nothing is left.
    left: str
    #: What a queued one waits for, and one that is being cancelled.
    wait: str
    #: What a dry run found: "Would add 12, change 3, delete 1; 4 cannot be taken in."
    found: str
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
    #: It has not ended, so that the page looks again.
    is_open: bool
    #: Open, and not being cancelled already.
    can_cancel: bool
    #: Waiting for a person's word to delete what is gone from the source.
    is_stopped: bool
    #: Failed items that can be tried again.
    retryable: int


@dataclass(frozen=True, slots=True)
class DryRunNames:
    """The first items that a dry run would add, change and delete."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    deleted: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether it names any."""
        return bool(self.added or self.changed or self.deleted)


def sync_row(job: JobState, now: datetime, *, known: int) -> SyncRow:
    """Return a sync's row; `known` documents are stored, which its progress is guessed from while it is listed."""
    sync = job.sync
    is_open = sync.status in Sync.OPEN
    counts = ("seen", "added", "changed", "unchanged", "failed", "deleted", "chunks")
    return SyncRow(
        id=sync.pk,
        slug=sync.connection.slug,
        connection_name=sync.connection.name,
        kind="" if sync.kind == Sync.Kind.FULL else sync.get_kind_display().lower(),
        looks=_LOOKS[sync.kind],
        status=job.state,
        label=job.label,
        tone="warn" if job.state == Sync.Status.DONE and sync.failed else _TONES[job.state],
        stage=_stage(job),
        rate=_rate(job),
        left=_left(job),
        wait=_wait(job),
        found=_found(sync),
        since=wording.ago(sync.started_at or sync.queued_at, now),
        seconds=_seconds(sync, now),
        message=sync.message,
        progress=_progress(job, known) if is_open else None,
        is_open=is_open,
        can_cancel=is_open and sync.status != Sync.Status.CANCELLING,
        is_stopped=sync.status == Sync.Status.STOPPED,
        retryable=job.retryable,
        **{name: getattr(sync, name) for name in counts},
    )


def stage_rows(job: JobState) -> list[tuple[str, int]]:
    """Return what a running sync's items are at, in the order in which they pass: ("being parsed", 3)."""
    return [
        (f"{label}{_chunks(job, name)}", job.items[name]) for name, label in STAGE_LABELS.items() if name in job.items
    ]


def dry_run_names(sync: Sync) -> DryRunNames:
    """Return the first items that a dry run would change; none of any other sync."""
    if sync.kind != Sync.Kind.DRY_RUN:
        return DryRunNames((), (), ())
    named = list(sync.items.values_list("external_id", "state", "outcome"))
    return DryRunNames(
        added=tuple(name for name, _, outcome in named if outcome == SyncItem.Outcome.ADDED),
        changed=tuple(name for name, _, outcome in named if outcome == SyncItem.Outcome.CHANGED),
        deleted=tuple(name for name, state, _ in named if state == SyncItem.State.GONE),
    )


def wait_words(wait: Wait) -> str:
    """Return what a queued sync waits for, as a sentence."""
    if wait.reason in _WAITS:
        return _WAITS[wait.reason]
    if not wait.ahead:
        return "Next in line; it begins as soon as a worker is free."
    were = "was" if wait.ahead == 1 else "were"
    return f"Waits for a free worker; {wording.counted(wait.ahead, 'sync')} {were} queued before it."


def _wait(job: JobState) -> str:
    if job.sync.status == Sync.Status.CANCELLING:
        return "It ends as soon as its workers have stopped; that takes seconds."
    return wait_words(job.wait) if job.wait else ""


def _found(sync: Sync) -> str:
    if sync.kind != Sync.Kind.DRY_RUN or sync.status != Sync.Status.DONE:
        return ""
    refused = f"; {sync.failed:,} cannot be taken in" if sync.failed else ""
    return f"Would add {sync.added:,}, change {sync.changed:,}, delete {sync.deleted:,}{refused}."


def _stage(job: JobState) -> str:
    """Return what a running sync is at, with the items at each stage."""
    if job.sync.status != Sync.Status.RUNNING:
        return ""
    items = ", ".join(f"{job.items[name]} {name}{_chunks(job, name)}" for name in _STAGES if name in job.items)
    return items if job.sync.stage == Sync.Stage.WORKING and items else ": ".join(filter(None, (job.sync.stage, items)))


def _chunks(job: JobState, stage: str) -> str:
    """Return how far the chunks of the items that are embedded are; stored ones are among them."""
    if stage != SyncItem.Stage.EMBEDDING or not job.chunks_in_hand:
        return ""
    return f" ({job.chunks_embedded:,} of {wording.counted(job.chunks_in_hand, 'chunk')})"


def _rate(job: JobState) -> str:
    if not job.documents_per_second:
        return ""
    return f"{job.documents_per_second:.1f} documents/s, {job.chunks_per_second:.1f} chunks/s"


def _left(job: JobState) -> str:
    """Return about how long a sync's items still take; nothing where none is left, or nobody takes them in."""
    if job.state != Sync.Status.RUNNING or job.sync.kind == Sync.Kind.DRY_RUN:
        return ""
    is_listed = job.sync.listed_at is not None
    if is_listed and not any(job.items.get(name) for name in _OPEN_STAGES):
        return ""
    return _ESTIMATING if job.seconds_left is None else time_left(job.seconds_left)


def _progress(job: JobState, known: int) -> float | None:
    """Return percent: of what was listed, once that is all; before, of what the store holds, as a guess."""
    sync = job.sync
    if sync.listed_at is not None and sync.seen:
        done = sync.added + sync.changed + sync.unchanged + sync.failed
        in_hand = sum(job.items.get(name, 0) for name in (SyncItem.Stage.EMBEDDING, SyncItem.Stage.STORING))
        share = job.chunks_embedded / job.chunks_in_hand if job.chunks_in_hand else 0.0
        return round(percent(done + in_hand * share, sync.seen), 1)
    return round(percent(sync.seen, known), 1) if known and sync.unchanged else None


def _seconds(sync: Sync, now: datetime) -> str:
    """Return how long a sync took, or has taken; empty before it starts."""
    if sync.started_at is None:
        return ""
    return duration(((sync.finished_at or now) - sync.started_at).total_seconds())
