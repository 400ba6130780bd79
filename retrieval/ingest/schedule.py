"""Schedules: which connections are due, when they are due next, and when listing only the changes is enough."""

import json
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q
from django.db.models.functions import Now
from django.utils import timezone

from corecube.connectors import is_incremental
from corecube.models import Connection
from retrieval.ingest.languages import read_language
from retrieval.ingest.prepared_document import fingerprint
from retrieval.ingest.run import limits_of
from retrieval.models import Sync, SyncItem

_JITTER: Final = 0.1  #: Share of the interval by which a start is earlier, so that connections do not start together.
_WAKE_SECONDS: Final = 20


def queue_due(draw: Callable[[], float] = random.random) -> list[Sync]:
    """Queue a sync of each connection that is due, and return these syncs.

    However many processes call this, each due time counts once. While a sync of the connection waits or runs, its due
    time is skipped. A sync lists only the changes when they are enough.
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
    """Return the time one interval after `now`, up to a tenth of it earlier; `draw` gives 0 to 1."""
    return now + timedelta(minutes=every_minutes) * (1 - _JITTER * draw())


def changes_since(connection: Connection) -> datetime | None:
    """Return the time since which listing a connection's changes is enough; None when a full listing is needed.

    Changes are enough when the source can list them, the last full sync is recent and had the same settings, and each
    sync since then was done. The time is the start of the last of them.
    """
    if not is_incremental(connection.kind):
        return None
    ended = connection.syncs.exclude(kind=Sync.Kind.DRY_RUN).exclude(status__in=Sync.OPEN)
    full = ended.filter(kind=Sync.Kind.FULL, status=Sync.Status.DONE).order_by("-started_at").first()
    if full is None or full.started_at is None or full.settings_mark != settings_mark(connection):
        return None
    if full.started_at <= timezone.now() - timedelta(hours=settings.CORECUBE_FULL_SYNC_HOURS):
        return None
    later = ended.filter(finished_at__gt=full.finished_at)
    if later.exclude(status=Sync.Status.DONE).exists():
        return None
    last: datetime | None = later.filter(kind=Sync.Kind.CHANGES).aggregate(last=Max("started_at"))["last"]
    return last or full.started_at


def settings_mark(connection: Connection) -> str:
    """Return the SHA-256 of every setting that decides which items are listed and what is stored of them."""
    source = json.dumps([connection.kind, connection.config, connection.sealed_secrets], sort_keys=True)
    made_by = (read_language(connection), limits_of(connection), connection.source_type)
    return fingerprint(source.encode(), recipe=f"settings {made_by} {settings.CORECUBE_MAX_FILE_BYTES}")


def refresh_waiting_syncs() -> None:
    """Store a heartbeat for syncs whose last items wait for their next try, so that they do not count as lost."""
    waiting = SyncItem.objects.filter(sync_id=OuterRef("pk"), state=SyncItem.State.QUEUED, next_try_at__gt=Now())
    shared = Sync.objects.filter(Exists(waiting), status=Sync.Status.RUNNING, is_private=False)
    shared.update(heartbeat_at=timezone.now())


def is_wake_due() -> bool:
    """Return whether workers need another message about the open syncs, and record that it is sent."""
    now = timezone.now()
    recent = Q(woken_at__gt=now - timedelta(seconds=_WAKE_SECONDS))
    open_syncs = Sync.objects.filter(status__in=(Sync.Status.QUEUED, Sync.Status.RUNNING))
    return bool(open_syncs.exclude(recent).update(woken_at=now))
