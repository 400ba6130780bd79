"""Schedules: which connections are due, and when they are next."""

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from django.utils import timezone

from corecube.models import Connection
from retrieval.ingest.changes import changes_since
from retrieval.models import Sync, SyncItem

#: Share of the interval by which a start moves, so that connections do not all start together.
_JITTER: Final = 0.1
#: How long after a message to the workers the next one is sent for the same sync.
_WAKE_SECONDS: Final = 20


def queue_due(draw: Callable[[], float] = random.random) -> list[Sync]:
    """Queue a sync of each connection that is due, and return them.

    However many processes call this, each time that a connection is due counts once. While a sync of the connection
    waits or runs, the turn is passed over. Where changes are enough, only they will be listed.
    """
    now = timezone.now()
    queued = []
    with transaction.atomic():
        is_due = Q(next_sync_at=None) | Q(next_sync_at__lte=now)
        due = Connection.objects.filter(is_due, enabled=True, sync_every_minutes__isnull=False)
        for connection in due.select_for_update(skip_locked=True, no_key=True):
            Connection.objects.filter(pk=connection.pk).update(
                next_sync_at=next_start(now, connection.sync_every_minutes or 1, draw)
            )
            if not connection.syncs.filter(status__in=Sync.OPEN).exists():
                kind = Sync.Kind.FULL if changes_since(connection) is None else Sync.Kind.CHANGES
                queued.append(Sync.objects.create(connection=connection, kind=kind))
    return queued


def next_start(now: datetime, every_minutes: int, draw: Callable[[], float] = random.random) -> datetime:
    """Return a moment one interval after `now`, up to a tenth of it earlier or later; `draw` gives 0 to 1."""
    return now + timedelta(minutes=every_minutes) * (1 - _JITTER + 2 * _JITTER * draw())


def keep_waiting() -> None:
    """Mark syncs as alive whose last items wait for their next try: nobody works on them, and nobody should."""
    waiting = SyncItem.objects.filter(sync_id=OuterRef("pk"), state=SyncItem.State.QUEUED, next_try_at__gt=Now())
    shared = Sync.objects.filter(Exists(waiting), status=Sync.Status.RUNNING, is_private=False)
    shared.update(heartbeat_at=timezone.now())


def wake_is_due() -> bool:
    """Return whether workers are to be told again of the open syncs, and note that they are."""
    now = timezone.now()
    told = Q(woken_at__gt=now - timedelta(seconds=_WAKE_SECONDS))
    open_syncs = Sync.objects.filter(status__in=(Sync.Status.QUEUED, Sync.Status.RUNNING))
    return bool(open_syncs.exclude(told).update(woken_at=now))
