"""What queued syncs wait for: waiting is not being stuck."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from retrieval.models import Sync

#: A worker that is up looks at every open sync more often than this.
_UNSEEN: Final = timedelta(seconds=60)


class Reason(StrEnum):
    """Why a sync has not begun."""

    #: Its connection is disabled.
    DISABLED = "disabled"
    #: Another sync of its connection comes first.
    SAME_CONNECTION = "same_connection"
    #: Workers are up and will come to it.
    WORKER = "worker"
    #: No worker has looked for a while.
    NO_WORKER = "no_worker"


@dataclass(frozen=True, slots=True)
class Wait:
    """What one queued sync waits for."""

    reason: Reason
    #: Syncs that wait and were queued before it.
    ahead: int = 0


def waits(queued: Collection[Sync], now: datetime) -> dict[UUID, Wait]:
    """Return what queued syncs, read with their connections, wait for; in one query, none for none."""
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
        return Wait(Reason.DISABLED)
    if sync.connection_id in running or any(it.connection_id == sync.connection_id for it in waiting):
        return Wait(Reason.SAME_CONNECTION)
    is_unseen = now - max(sync.queued_at, sync.woken_at or sync.queued_at) > _UNSEEN
    return Wait(Reason.NO_WORKER if is_unseen else Reason.WORKER, len(waiting))
