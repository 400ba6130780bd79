"""Syncing a connection: what is new or changed is embedded, what is gone is deleted, the rest is left alone.

A sync is a row, and what it has to do are rows too; processes only work on them. So one that is killed loses at most
what it had in hand, and whoever comes next goes on where it stopped.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from uuid import uuid4

from django.db import InterfaceError, OperationalError, transaction
from django.db import connection as database
from django.utils import timezone

from corecube.errors import CoreCubeError, UnknownConnectionError
from corecube.models import Connection
from retrieval.errors import ConnectionDisabledError, SyncRunningError
from retrieval.ingest import claims
from retrieval.ingest.cancelling import finish_cancelled
from retrieval.ingest.heartbeat import alive_since
from retrieval.ingest.listing import Listing
from retrieval.ingest.lock import only_sync_of
from retrieval.ingest.locking import locked
from retrieval.ingest.run import Progress, Source, SyncEndedError, job_of, reload
from retrieval.ingest.settle import end, forget_items, has_work_left, settle, tidy
from retrieval.ingest.watchdog import Watchdog, new_steps
from retrieval.ingest.work import Work
from retrieval.models import Sync, SyncItem

logger = logging.getLogger(__name__)

#: What a sync is in that can be worked on.
_WORKABLE: Final = (Sync.Status.QUEUED, Sync.Status.RUNNING)
#: How often a process looks whether items that wait may be tried again.
_WAIT_SECONDS: Final = 0.5


def sync_connection(
    connection: Connection,
    *,
    sync: Sync | None = None,
    progress: Progress = lambda _: None,
    source: Source | None = None,
) -> Sync:
    """Bring the store in line with a connection's source in this process and return the finished sync.

    `progress` is called as the counts change; `source` stands in for the connection's own connector and parsers.
    The sync ends as DONE (bad items are listed as problems), as STOPPED when it would delete more than the
    guarded share and its `allow_deletions` is off, as CANCELLED when a person wanted that, or as FAILED, and then
    the error is raised on. A stored sync that has ended already is returned as it is.
    Raises SyncRunningError when another sync of the connection is at work, ConnectionDisabledError, and
    UnknownConnectionError when the connection is deleted meanwhile.
    """
    sync = sync or Sync(connection=connection)
    with only_sync_of(connection):
        if _has_ended(sync):
            sync.refresh_from_db()
            return sync
        begin(sync, is_private=True)
        with failing(sync):
            _run(sync, source, progress)
    return sync


def begin(sync: Sync, *, is_private: bool) -> None:
    """Store the sync as running, once the connection's interrupted one is closed; the caller holds its lock.

    A private sync is worked on by this process alone. Raises SyncRunningError while workers are at another one.
    """
    for other in sync.connection.syncs.filter(status=Sync.Status.CANCELLING):
        if not finish_cancelled(other):
            raise SyncRunningError
    for other in sync.connection.syncs.filter(status=Sync.Status.RUNNING).exclude(pk=sync.pk):
        if is_alive(other):
            raise SyncRunningError
        _close_interrupted(other)
    if sync.status == Sync.Status.RUNNING and sync.is_private:
        # Its process ended with claims in hand, and nobody else can have any.
        claims.return_lost(sync)
    sync.is_private, sync.message, sync.finished_at = is_private, "", None
    if sync.status != Sync.Status.RUNNING:
        sync.status, sync.started_at = Sync.Status.RUNNING, timezone.now()
    sync.heartbeat_at = timezone.now()
    if sync._state.adding:  # noqa: SLF001 -- Django documents it for this
        sync.save()
        return
    fields = {name: getattr(sync, name) for name in ("status", "started_at", "is_private", "message", "heartbeat_at")}
    if not Sync.objects.filter(pk=sync.pk, status__in=_WORKABLE).update(**fields):
        raise SyncEndedError


def is_alive(sync: Sync) -> bool:
    """Return whether workers gave a sign of life of a running sync lately; of a private one its lock tells."""
    return not sync.is_private and sync.heartbeat_at is not None and sync.heartbeat_at >= alive_since()


def _run(sync: Sync, source: Source | None, progress: Progress) -> None:
    """List, work and settle, in this process alone."""
    require_enabled(sync.connection)
    job = job_of(sync, source)
    worker, steps = uuid4(), new_steps()
    with Watchdog(sync, worker, steps), _giving_back(worker):
        if sync.kind != Sync.Kind.RETRY:
            Listing(job, progress, steps).run()
        work = Work(job, worker, progress, steps)
        while work.batch() or has_work_left(sync):
            reload(sync)
            if sync.status != Sync.Status.RUNNING:
                raise SyncEndedError
            if not claims.claimable().filter(sync=sync).exists() and has_work_left(sync):
                time.sleep(_WAIT_SECONDS)
        settle(sync, steps)
    logger.info("sync.%s connection=%s chunks=%d", sync.status, sync.connection.slug, sync.chunks)


@contextmanager
def _giving_back(worker: object) -> Iterator[None]:
    """Give back what the worker holds when its process is told to end."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if not database.in_atomic_block:
            claims.release(worker)  # type: ignore[arg-type]
        raise


@contextmanager
def failing(sync: Sync) -> Iterator[None]:
    """Store the sync as failed when the block raises, and raise on; return when it was cancelled meanwhile.

    What only ends the process (Ctrl-C, a worker told to quit) or the database leaves the sync running, and it is
    taken up again.
    """
    try:
        yield
    except SyncEndedError as error:
        if not Sync.objects.filter(pk=sync.pk).exists():
            raise UnknownConnectionError("The connection was deleted while it was synced.") from error
        stopped(sync)
        reload(sync)
    except (InterfaceError, OperationalError):
        # The database went away, and with it everything that could be said; what it holds will be gone on with.
        raise
    except Exception as error:
        if not Sync.objects.filter(pk=sync.pk).exists():
            raise UnknownConnectionError("The connection was deleted while it was synced.") from error
        # One that is being cancelled ends as that.
        with suppress(SyncEndedError):
            end(sync, Sync.Status.FAILED, str(error) if isinstance(error, CoreCubeError) else type(error).__name__)
        raise


def stopped(sync: Sync) -> None:
    """Put what was stored in order after this process stopped working on a sync, and end it if it was cancelled."""
    if Sync.objects.filter(pk=sync.pk, status=Sync.Status.CANCELLING).exists():
        finish_cancelled(sync, is_ours=True)
        return
    with suppress(SyncRunningError), only_sync_of(sync.connection):
        tidy(sync.connection)


def require_enabled(connection: Connection) -> None:
    """Raise ConnectionDisabledError for a connection that is switched off."""
    if not connection.enabled:
        raise ConnectionDisabledError


def _close_interrupted(sync: Sync) -> None:
    """Close a sync that was running when its process died."""
    with transaction.atomic():
        # The process may be alive after all: whoever changes items and their sync begins with the items.
        running = SyncItem.objects.filter(sync=sync, state=SyncItem.State.RUNNING)
        locked(running).update(state=SyncItem.State.QUEUED)
        forget_items(sync)
        Sync.objects.filter(pk=sync.pk, status=Sync.Status.RUNNING).update(
            status=Sync.Status.FAILED, stage="", finished_at=timezone.now(), message="It was interrupted."
        )


def _has_ended(sync: Sync) -> bool:
    """Return whether the sync was run since it was read."""
    return Sync.objects.filter(pk=sync.pk).exclude(status__in=_WORKABLE).exists()
