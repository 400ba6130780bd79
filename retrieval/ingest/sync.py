"""Syncing a connection: what is new or changed is embedded, what is gone is deleted, the rest is left alone.

Every batch is one transaction and an unchanged document is known by its fingerprint, so a sync that is
killed loses at most the batch in hand, and the next one goes on where it stopped.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.conf import settings
from django.db import connection as database
from django.utils import timezone

from corecube.connectors import connector_for
from corecube.errors import CoreCubeError, UnknownConnectionError
from corecube.models import Connection
from retrieval import runtime
from retrieval.errors import ConnectionDisabledError, SyncRunningError
from retrieval.index.embedding_index import ensure_index
from retrieval.ingest.encode import Target
from retrieval.ingest.run import Progress, Source, SyncRun
from retrieval.models import Sync

logger = logging.getLogger(__name__)

#: First key of the advisory locks that keep two syncs of one connection apart.
_LOCK_CLASS: Final = 7_301
#: What a sync is in until it has ended.
OPEN: Final = (Sync.Status.QUEUED, Sync.Status.RUNNING)


def sync_connection(
    connection: Connection,
    *,
    sync: Sync | None = None,
    progress: Progress = lambda _: None,
    source: Source | None = None,
) -> Sync:
    """Bring the store in line with a connection's source and return the finished sync.

    `progress` is called after every item; `source` stands in for the connection's own connector and parsers.
    The sync ends as DONE (bad items are listed as problems), as STOPPED when it would delete more than the
    guarded share and its `allow_deletions` is off, or as FAILED, and then the error is raised on. A stored
    sync that has ended already is returned as it is.
    Raises SyncRunningError when another sync of the connection is at work, ConnectionDisabledError, and
    UnknownConnectionError when the connection is deleted meanwhile.
    """
    sync = sync or Sync(connection=connection)
    with _only_sync_of(connection):
        if _has_ended(sync):
            sync.refresh_from_db()
            return sync
        _end_interrupted(connection, sync)
        _start(sync)
        try:
            _run(sync, source, progress)
        # What only ends the process (Ctrl-C, a worker told to quit) leaves the sync running, to be taken up again.
        except Exception as error:
            _fail(sync, error)
            raise
    return sync


def _run(sync: Sync, source: Source | None, progress: Progress) -> None:
    require_enabled(sync.connection)
    source = source or Source(connector_for(sync.connection))
    source.connector.check()
    encoder = runtime.encoder()
    target = Target(
        connection=sync.connection,
        encoder=encoder,
        index=ensure_index(encoder),
        text_search_config=sync.connection.language or settings.CORECUBE_TEXT_SEARCH_CONFIG,
        synced_at=timezone.now(),
    )
    run = SyncRun(sync, source, target, progress)
    run.take_in()
    run.store_waiting()
    run.list_problems()
    deletable = run.missing()
    if _is_guarded(len(deletable), len(run.known)) and not sync.allow_deletions:
        run.settle()
        share = f"{len(deletable)} of {len(run.known)} documents are gone from the source"
        _finish(sync, Sync.Status.STOPPED, f"{share}; nothing was deleted. Confirm the deletion to go on.")
        return
    run.delete(deletable)
    run.settle()
    _finish(sync, Sync.Status.DONE)
    Connection.objects.filter(pk=sync.connection.pk).update(last_synced_at=target.synced_at)


def require_enabled(connection: Connection) -> None:
    """Raise ConnectionDisabledError for a connection that is switched off."""
    if not connection.enabled:
        raise ConnectionDisabledError


def _is_guarded(deletions: int, known: int) -> bool:
    """Return whether so many deletions need a person's word."""
    return deletions > 1 and deletions * 100 > known * settings.CORECUBE_DELETE_GUARD_PERCENT


def abandoned_syncs() -> list[Sync]:
    """Return the syncs that wait, and those that were running when their process died."""
    return [
        sync
        for sync in Sync.objects.filter(status__in=OPEN).select_related("connection")
        if sync.status == Sync.Status.QUEUED or not _is_at_work(sync.connection)
    ]


def _is_at_work(connection: Connection) -> bool:
    """Return whether some process syncs the connection now."""
    try:
        with _only_sync_of(connection):
            return False
    except SyncRunningError:
        return True


@contextmanager
def _only_sync_of(connection: Connection) -> Iterator[None]:
    """Hold the connection's advisory lock, which the database gives up by itself when the process dies."""
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_LOCK_CLASS, connection.pk])
        if cursor.fetchone() != (True,):
            raise SyncRunningError
    try:
        yield
    finally:
        with database.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_LOCK_CLASS, connection.pk])


def _end_interrupted(connection: Connection, current: Sync) -> None:
    """Close syncs that were running when their process died; nobody runs them, since the lock is ours."""
    interrupted = connection.syncs.filter(status=Sync.Status.RUNNING).exclude(pk=current.pk)
    interrupted.update(status=Sync.Status.FAILED, finished_at=timezone.now(), message="It was interrupted.")


def _has_ended(sync: Sync) -> bool:
    """Return whether the sync was run since it was read, by a worker that got its message too."""
    return Sync.objects.filter(pk=sync.pk).exclude(status__in=OPEN).exists()


def _start(sync: Sync) -> None:
    """Store the sync as running, with the counts of an interrupted attempt forgotten."""
    sync.seen = sync.added = sync.changed = sync.unchanged = sync.failed = sync.deleted = sync.chunks = 0
    sync.encode_seconds, sync.message, sync.finished_at = 0.0, "", None
    sync.status, sync.started_at = Sync.Status.RUNNING, timezone.now()
    sync.save()


def _fail(sync: Sync, error: Exception) -> None:
    """Store the sync as failed; raise UnknownConnectionError when it is gone, which it is with its connection."""
    if not Sync.objects.filter(pk=sync.pk).exists():
        raise UnknownConnectionError("The connection was deleted while it was synced.") from error
    _finish(sync, Sync.Status.FAILED, str(error) if isinstance(error, CoreCubeError) else type(error).__name__)


def _finish(sync: Sync, status: Sync.Status, message: str = "") -> None:
    sync.status, sync.finished_at, sync.message = status, timezone.now(), message
    sync.save()
    logger.info("sync.%s connection=%s chunks=%d failed=%d", status, sync.connection.slug, sync.chunks, sync.failed)
