"""Jobs as people see them: each sync with its state, how far it is and how fast."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Count

from retrieval.ingest.heartbeat import alive_since
from retrieval.ingest.lock import is_locked
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
    #: Failed items of it that can be tried again.
    retryable: int
    #: What it waits for; None once it has begun.
    wait: Wait | None = None


def job_states(syncs: Iterable[Sync], now: datetime) -> list[JobState]:
    """Return where syncs stand, in the same order, in three queries whatever their number.

    They were read with their connections.
    """
    syncs = list(syncs)
    stages = _stages([sync.pk for sync in syncs if sync.status == Sync.Status.RUNNING])
    retryable = _retryable([sync.pk for sync in syncs if sync.status not in Sync.OPEN])
    waiting = waits([sync for sync in syncs if sync.status == Sync.Status.QUEUED], now)
    return [
        replace(_state(sync, stages.get(sync.pk, {}), retryable.get(sync.pk, 0), now), wait=waiting.get(sync.pk))
        for sync in syncs
    ]


def _state(sync: Sync, items: Mapping[str, int], retryable: int, now: datetime) -> JobState:
    seconds = ((sync.finished_at or now) - sync.started_at).total_seconds() if sync.started_at else 0.0
    taken = sync.added + sync.changed + sync.unchanged
    return JobState(
        sync=sync,
        state=STALLED if is_stalled(sync) else sync.status,
        items=items,
        documents_per_second=taken / seconds if seconds > 0 else 0.0,
        chunks_per_second=sync.chunks / seconds if seconds > 0 else 0.0,
        retryable=retryable,
    )


def is_stalled(sync: Sync) -> bool:
    """Return whether a sync is said to run while nobody gave a sign of life for it lately."""
    if sync.status != Sync.Status.RUNNING or (sync.heartbeat_at and sync.heartbeat_at >= alive_since()):
        return False
    return not (sync.is_private and is_locked(sync.connection_id))


def _stages(syncs: list[UUID]) -> dict[UUID, dict[str, int]]:
    rows = (
        SyncItem.objects.filter(sync_id__in=syncs)
        .exclude(state=SyncItem.State.DONE)
        .order_by()
        .values_list("sync_id", "state", "stage")
        .annotate(Count("pk"))
    )
    counts: dict[UUID, dict[str, int]] = {}
    for sync, state, stage, count in rows:
        name = stage or state
        counts.setdefault(sync, {})[name] = counts.get(sync, {}).get(name, 0) + count
    return counts


def _retryable(syncs: list[UUID]) -> dict[UUID, int]:
    failed = SyncItem.objects.filter(sync_id__in=syncs, state=SyncItem.State.FAILED).exclude(item={}).order_by()
    return dict(failed.values_list("sync_id").annotate(Count("pk")))
