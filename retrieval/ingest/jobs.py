"""Jobs as people see them: each sync with its state, its progress and rate, and what a queued one waits for."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from django.db.models import Count, Sum

from retrieval.ingest.claims import alive_since, is_locked
from retrieval.ingest.pace import seconds_left
from retrieval.ingest.problems import retryable
from retrieval.models import Sync, SyncItem

STALLED: Final = "stalled"
_CHECK_INTERVAL: Final = timedelta(seconds=60)  #: A running worker checks every open sync more often than this.


class WaitReason(StrEnum):
    """Why a sync has not started."""

    DISABLED = "disabled"
    SAME_CONNECTION = "same_connection"
    WORKER = "worker"
    NO_WORKER = "no_worker"


@dataclass(frozen=True, slots=True)
class Wait:
    """What a queued sync waits for."""

    reason: WaitReason
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class JobState:
    """State and progress of one sync."""

    sync: Sync
    state: str  #: queued, running, stalled, done, failed, stopped, cancelling or cancelled.
    #: Items by state or stage: queued, parsing, embedding, storing, failed, gone. Empty once it has ended.
    items: Mapping[str, int]
    documents_per_second: float  #: Documents and chunks per second; 0 before there are any.
    chunks_per_second: float
    retryable: int
    wait: Wait | None = None  #: What it waits for; None once it has started.
    #: Chunks of the items that are being embedded or stored, and how many of them have vectors.
    chunks_in_hand: int = 0
    chunks_embedded: int = 0
    seconds_left: float | None = None  #: Estimated from the last minutes; None without an estimate.

    @property
    def label(self) -> str:
        """Its state in words: "done with 4 problems"."""
        return self.state if self.state == STALLED else self.sync.label


@dataclass(slots=True)
class _Items:
    counts: dict[str, int] = field(default_factory=dict)
    chunks: int = 0  #: Chunks of the parsed items, and how many of them have vectors.
    embedded: int = 0


def job_states(syncs: Iterable[Sync], now: datetime) -> list[JobState]:
    """Return the states of syncs, read with their connections, in the same order and in three queries for all."""
    syncs = list(syncs)
    items = _items_by_sync([sync.pk for sync in syncs if sync.status == Sync.Status.RUNNING])
    ended = [sync.pk for sync in syncs if sync.status not in Sync.OPEN]
    failed = retryable(SyncItem.objects.filter(sync_id__in=ended)).order_by()
    again: dict[UUID, int] = dict(failed.values_list("sync_id").annotate(Count("pk")))
    waiting = waits([sync for sync in syncs if sync.status == Sync.Status.QUEUED], now)
    return [
        _state(sync, items.get(sync.pk, _Items()), again.get(sync.pk, 0), waiting.get(sync.pk), now) for sync in syncs
    ]


def _items_by_sync(syncs: list[UUID]) -> dict[UUID, _Items]:
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


def _state(sync: Sync, items: _Items, again: int, wait: Wait | None, now: datetime) -> JobState:
    seconds = ((sync.finished_at or now) - sync.started_at).total_seconds() if sync.started_at else 0.0
    documents = sync.added + sync.changed + sync.unchanged
    return JobState(
        sync=sync,
        state=STALLED if _is_stalled(sync) else sync.status,
        items=items.counts,
        chunks_in_hand=items.chunks,
        chunks_embedded=items.embedded,
        seconds_left=_seconds_left(sync, items, now),
        documents_per_second=documents / seconds if seconds > 0 else 0.0,
        chunks_per_second=sync.chunks / seconds if seconds > 0 else 0.0,
        retryable=again,
        wait=wait,
    )


def _is_stalled(sync: Sync) -> bool:
    if sync.status != Sync.Status.RUNNING or (sync.heartbeat_at and sync.heartbeat_at >= alive_since()):
        return False
    return not (sync.is_private and is_locked(sync.connection_id))


def _seconds_left(sync: Sync, items: _Items, now: datetime) -> float | None:
    """Return how long a sync's items still take; None before all are listed, and without an estimate."""
    if sync.status != Sync.Status.RUNNING or sync.listed_at is None or not sync.pace:
        return None
    parsed = max(sync.pace[-1][1], 1)
    unparsed = sum(items.counts.get(name, 0) for name in (SyncItem.State.QUEUED, SyncItem.Stage.PARSING))
    chunks, per_item = items.chunks - items.embedded, (sync.chunks + items.chunks) / parsed
    if not unparsed and not chunks:
        return None
    return seconds_left(sync.pace, items=unparsed, chunks=chunks, per_item=per_item, at=now.timestamp())


def waits(queued: Collection[Sync], now: datetime) -> dict[UUID, Wait]:
    """Return what queued syncs, read with their connections, wait for; one query, none for no syncs."""
    if not queued:
        return {}
    opened = list(
        Sync.objects.filter(status__in=Sync.OPEN)
        .order_by("queued_at", "pk")
        .only("pk", "connection_id", "status", "queued_at", "woken_at")
    )
    return {sync.pk: _wait(sync, opened, now) for sync in queued}


def _wait(sync: Sync, opened: list[Sync], now: datetime) -> Wait:
    before = [it for it in opened if (it.queued_at, it.pk) < (sync.queued_at, sync.pk)]
    waiting = [it for it in before if it.status == Sync.Status.QUEUED]
    running = {it.connection_id for it in opened if it.status != Sync.Status.QUEUED}
    if not sync.connection.enabled:
        return Wait(WaitReason.DISABLED)
    if sync.connection_id in running or any(it.connection_id == sync.connection_id for it in waiting):
        return Wait(WaitReason.SAME_CONNECTION)
    is_unchecked = now - max(sync.queued_at, sync.woken_at or sync.queued_at) > _CHECK_INTERVAL
    return Wait(WaitReason.NO_WORKER if is_unchecked else WaitReason.WORKER, len(waiting))
