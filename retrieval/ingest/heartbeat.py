"""Saying regularly that a process is at work, so that the others know when it is not."""

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from retrieval.ingest.locking import locked
from retrieval.models import Sync, SyncItem


def alive_since() -> datetime:
    """Return the moment before which a last sign of life means that its process is lost."""
    return timezone.now() - timedelta(seconds=settings.CORECUBE_LOST_SECONDS)


def beat(sync_id: UUID, worker: UUID) -> None:
    """Mark a running sync, and what the worker has claimed of it, as worked on now."""
    now = timezone.now()
    Sync.objects.filter(pk=sync_id, status=Sync.Status.RUNNING).update(heartbeat_at=now)
    with transaction.atomic():
        mine = SyncItem.objects.filter(worker=worker, state=SyncItem.State.RUNNING, sync_id=sync_id)
        locked(mine).update(heartbeat_at=now)
