"""Saying regularly that a process is at work, so that the others know when it is not."""

import logging
from datetime import datetime, timedelta
from threading import Event, Thread
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from django.conf import settings
from django.db import Error, connection, transaction
from django.utils import timezone

from retrieval.ingest.locking import locked
from retrieval.models import Sync, SyncItem

logger = logging.getLogger(__name__)

#: How many times a process speaks up before it would be taken for lost.
_BEATS: Final = 5


def alive_since() -> datetime:
    """Return the moment before which a last sign of life means that its process is lost."""
    return timezone.now() - timedelta(seconds=settings.CORECUBE_LOST_SECONDS)


class Heartbeat:
    """Marks a sync, and what a worker has claimed of it, as worked on while the block runs."""

    def __init__(self, sync: Sync, worker: UUID) -> None:
        self._sync_id = sync.pk
        self._worker = worker
        self._end = Event()
        self._thread = Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        beat(self._sync_id, self._worker)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(settings.CORECUBE_LOST_SECONDS / _BEATS):
            try:
                beat(self._sync_id, self._worker)
            except Error as error:
                # The work itself meets it too, and knows what to do.
                logger.info("heartbeat.failed error=%s", type(error).__name__)
            finally:
                connection.close()


def beat(sync_id: UUID, worker: UUID) -> None:
    """Mark a running sync, and what the worker has claimed of it, as worked on now."""
    now = timezone.now()
    Sync.objects.filter(pk=sync_id, status=Sync.Status.RUNNING).update(heartbeat_at=now)
    with transaction.atomic():
        mine = SyncItem.objects.filter(worker=worker, state=SyncItem.State.RUNNING, sync_id=sync_id)
        locked(mine).update(heartbeat_at=now)
