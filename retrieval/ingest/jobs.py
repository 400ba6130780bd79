"""Jobs as people see them: each sync with its state, how far it is and how fast."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Count, Sum

from retrieval.ingest.heartbeat import alive_since
from retrieval.ingest.lock import is_locked
from retrieval.ingest.pace import Rest, seconds_left
from retrieval.ingest.problems import retryable
from retrieval.ingest.waiting import Wait, waits
from retrieval.models import Sync, SyncItem

#: What a running sync is said to be in when nobody works on it.
STALLED: Final = "stalled"


@dataclass(frozen=True, slots=True)
class JobState:
    """Where one sync stands."""

    sync: Sync
    #: queued, running, stalled, done, failed, stopped, cancelling or cancelled.
    state: str
    #: Items by what they are at: queued, parsing, embedding, storing, failed, gone. Empty once it has ended.
    items: Mapping[str, int]
    #: Documents and chunks that were taken in a second; 0 before there are any.
    documents_per_second: float
    chunks_per_second: float
    #: Failed items of it for which trying again can help.
    retryable: int
    #: What it waits for; None once it has begun.
    wait: Wait | None = None
    #: Chunks of the items that are being embedded or stored, and how many of them have their vectors.
    chunks_in_hand: int = 0
    chunks_embedded: int = 0
    #: Until its items are done, at its pace of the last minutes; None where nothing tells.
    seconds_left: float | None = None

    @property
    def label(self) -> str:
        """Its state in words: "done with 4 problems"."""
        return self.state if self.state == STALLED else self.sync.label


def job_states(syncs: Iterable[Sync], now: datetime) -> list[JobState]:
    """Return where syncs stand, in the same order, in three queries whatever their number.

    They were read with their connections.
    """
    syncs = list(syncs)
    items = _items_of([sync.pk for sync in syncs if sync.status == Sync.Status.RUNNING])
    again = _retryable([sync.pk for sync in syncs if sync.status not in Sync.OPEN])
    waiting = waits([sync for sync in syncs if sync.status == Sync.Status.QUEUED], now)
    return [
        replace(_state(sync, items.get(sync.pk, _Items()), again.get(sync.pk, 0), now), wait=waiting.get(sync.pk))
        for sync in syncs
    ]


@dataclass(slots=True)
class _Items:
    """The items of a sync that are not done."""

    counts: dict[str, int] = field(default_factory=dict)
    #: Of those that are parsed.
    chunks: int = 0
    embedded: int = 0

    @property
    def unparsed(self) -> int:
        return sum(self.counts.get(name, 0) for name in (SyncItem.State.QUEUED, SyncItem.Stage.PARSING))


def _state(sync: Sync, items: _Items, again: int, now: datetime) -> JobState:
    seconds = ((sync.finished_at or now) - sync.started_at).total_seconds() if sync.started_at else 0.0
    taken = sync.added + sync.changed + sync.unchanged
    return JobState(
        sync=sync,
        state=STALLED if is_stalled(sync) else sync.status,
        items=items.counts,
        chunks_in_hand=items.chunks,
        chunks_embedded=items.embedded,
        seconds_left=_seconds_left(sync, items, now),
        documents_per_second=taken / seconds if seconds > 0 else 0.0,
        chunks_per_second=sync.chunks / seconds if seconds > 0 else 0.0,
        retryable=again,
    )


def _seconds_left(sync: Sync, items: _Items, now: datetime) -> float | None:
    """Return how long a sync's items still take; None before all are listed, and where its pace does not tell."""
    if sync.status != Sync.Status.RUNNING or sync.listed_at is None or not sync.pace:
        return None
    parsed = max(sync.pace[-1][1], 1)
    rest = Rest(items.unparsed, items.chunks - items.embedded, (sync.chunks + items.chunks) / parsed)
    return seconds_left(sync.pace, rest, at=now.timestamp()) if rest.items or rest.chunks else None


def is_stalled(sync: Sync) -> bool:
    """Return whether a sync is said to run while nobody gave a sign of life for it lately."""
    if sync.status != Sync.Status.RUNNING or (sync.heartbeat_at and sync.heartbeat_at >= alive_since()):
        return False
    return not (sync.is_private and is_locked(sync.connection_id))


def _items_of(syncs: list[UUID]) -> dict[UUID, _Items]:
    rows = (
        SyncItem.objects.filter(sync_id__in=syncs)
        .exclude(state=SyncItem.State.DONE)
        .order_by()
        .values_list("sync_id", "state", "stage")
        .annotate(Count("pk"), Sum("chunks"), Sum("embedded"))
    )
    found: dict[UUID, _Items] = {}
    for sync, state, stage, count, chunks, embedded in rows:
        items, name = found.setdefault(sync, _Items()), stage or state
        items.counts[name] = items.counts.get(name, 0) + count
        if stage in {SyncItem.Stage.EMBEDDING, SyncItem.Stage.STORING}:
            items.chunks += chunks
            items.embedded += embedded
    return found


def _retryable(syncs: list[UUID]) -> dict[UUID, int]:
    failed = retryable(SyncItem.objects.filter(sync_id__in=syncs)).order_by()
    return dict(failed.values_list("sync_id").annotate(Count("pk")))
