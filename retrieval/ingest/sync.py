"""Syncing a connection: new and changed items are embedded, missing ones are deleted, the rest stays as it is.

A sync and its items are rows, and processes only work on them. A process that is killed loses at most the items in
progress, and the next one continues where it stopped.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from uuid import UUID, uuid4

from django.db import InterfaceError, OperationalError, transaction
from django.db import connection as database
from django.utils import timezone

from corecube.errors import CoreCubeError, UnknownConnectionError
from corecube.models import Connection
from retrieval.errors import ConnectionDisabledError, SyncRunningError
from retrieval.ingest import claims
from retrieval.ingest.claims import lock_items, sync_lock
from retrieval.ingest.completion import complete, delete_items, end, finish_cancelled, has_open_items, update_derived
from retrieval.ingest.listing import Listing
from retrieval.ingest.run import Progress, Source, SyncEndedError, job_of, reload
from retrieval.ingest.watchdog import Watchdog, new_steps
from retrieval.ingest.work import Work
from retrieval.models import Sync, SyncItem

logger = logging.getLogger(__name__)

_WORKABLE: Final = (Sync.Status.QUEUED, Sync.Status.RUNNING)
_WAIT_SECONDS: Final = 0.5


def sync_connection(
    connection: Connection,
    *,
    sync: Sync | None = None,
    progress: Progress = lambda _: None,
    source: Source | None = None,
) -> Sync:
    """Bring the store in line with a connection's source in this process and return the finished sync.

    `progress` is called as the counts change; `source` replaces the connection's connector and parsers.
    The sync ends as DONE (bad items are listed as problems), as STOPPED when it would delete more than the
    guarded share and its `allow_deletions` is off, as CANCELLED when a person cancelled it, or as FAILED, and then
    the error is raised again. A stored sync that has ended already is returned unchanged.
    Raises SyncRunningError when another sync of the connection is running, ConnectionDisabledError, and
    UnknownConnectionError when the connection is deleted during the sync.
    """
    sync = sync or Sync(connection=connection)
    with sync_lock(connection):
        if Sync.objects.filter(pk=sync.pk).exclude(status__in=_WORKABLE).exists():
            sync.refresh_from_db()
            return sync
        start(sync, is_private=True)
        with recording_failure(sync):
            _run(sync, source, progress)
    return sync


def start(sync: Sync, *, is_private: bool) -> None:
    """Close the connection's interrupted sync and store this one as running; the caller holds its lock.

    Only this process works on a private sync. Raises SyncRunningError while workers run another one.
    """
    for other in sync.connection.syncs.filter(status=Sync.Status.CANCELLING):
        if not finish_cancelled(other):
            raise SyncRunningError
    for other in sync.connection.syncs.filter(status=Sync.Status.RUNNING).exclude(pk=sync.pk):
        if is_alive(other):
            raise SyncRunningError
        with transaction.atomic():
            # The process may be alive after all, so the items are locked before their sync.
            running = SyncItem.objects.filter(sync=other, state=SyncItem.State.RUNNING)
            lock_items(running).update(state=SyncItem.State.QUEUED)
            delete_items(other)
            Sync.objects.filter(pk=other.pk, status=Sync.Status.RUNNING).update(
                status=Sync.Status.FAILED, stage="", finished_at=timezone.now(), message="It was interrupted."
            )
    if sync.status == Sync.Status.RUNNING and sync.is_private:
        # Its process ended while it held claims, and no other process can hold any.
        claims.release_lost(sync)
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
    """Return whether workers sent a recent heartbeat for a running sync; False for a private one, which has a lock."""
    return not sync.is_private and sync.heartbeat_at is not None and sync.heartbeat_at >= claims.alive_since()


def _run(sync: Sync, source: Source | None, progress: Progress) -> None:
    require_enabled(sync.connection)
    job = job_of(sync, source)
    worker, steps = uuid4(), new_steps()
    with Watchdog(sync, worker, steps), _releasing(worker):
        if sync.kind != Sync.Kind.RETRY:
            listing = Listing(job, progress, steps)
            listing.run()
            job = listing.job
        work = Work(job, worker, progress, steps)
        while work.process_batch() or has_open_items(sync):
            reload(sync)
            if sync.status != Sync.Status.RUNNING:
                raise SyncEndedError
            if not claims.claimable().filter(sync=sync).exists() and has_open_items(sync):
                time.sleep(_WAIT_SECONDS)
        complete(sync, steps)
    logger.info("sync.%s connection=%s chunks=%d", sync.status, sync.connection.slug, sync.chunks)


@contextmanager
def _releasing(worker: UUID) -> Iterator[None]:
    """Release the worker's claims when its process receives a signal to end."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if not database.in_atomic_block:
            claims.release(worker)
        raise


@contextmanager
def recording_failure(sync: Sync) -> Iterator[None]:
    """Store the sync as failed when the block raises, and raise again; return when it was cancelled meanwhile.

    An exception that only ends the process (Ctrl-C, a worker's shutdown) or comes from a lost database leaves the sync
    running, and it is resumed later.
    """
    try:
        yield
    except SyncEndedError as error:
        if not Sync.objects.filter(pk=sync.pk).exists():
            raise UnknownConnectionError("The connection was deleted during the sync.") from error
        _clean_up_stopped(sync)
        reload(sync)
    except (InterfaceError, OperationalError):
        # Without the database nothing can be stored; the sync is resumed later.
        raise
    except Exception as error:
        if not Sync.objects.filter(pk=sync.pk).exists():
            raise UnknownConnectionError("The connection was deleted during the sync.") from error
        # A sync that is being cancelled ends as cancelled.
        with suppress(SyncEndedError):
            end(sync, Sync.Status.FAILED, str(error) if isinstance(error, CoreCubeError) else type(error).__name__)
        raise


def _clean_up_stopped(sync: Sync) -> None:
    """Update derived data after this process stopped working on a sync, and end the sync if it was cancelled."""
    if Sync.objects.filter(pk=sync.pk, status=Sync.Status.CANCELLING).exists():
        finish_cancelled(sync, worked_here=True)
        return
    with suppress(SyncRunningError), sync_lock(sync.connection):
        update_derived(sync.connection)


def require_enabled(connection: Connection) -> None:
    """Raise ConnectionDisabledError for a disabled connection."""
    if not connection.enabled:
        raise ConnectionDisabledError
