"""What a worker does next: begin a sync that waits, take in items, or end a sync. The rows say what is to be done.

Any number of workers may do this at once, in any number of processes; a message to one says no more than "look".
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final
from uuid import UUID, uuid4

from django.db.models import Exists, OuterRef
from django.utils import timezone

from corecube.errors import CoreCubeError
from retrieval.errors import SyncRunningError
from retrieval.ingest import claims
from retrieval.ingest.heartbeat import alive_since
from retrieval.ingest.listing import Listing
from retrieval.ingest.lock import only_sync_of
from retrieval.ingest.run import SyncEndedError, job_of, reload
from retrieval.ingest.settle import has_work_left, settle
from retrieval.ingest.sync import begin, failing, is_alive, require_enabled
from retrieval.ingest.watchdog import Watchdog, new_steps
from retrieval.ingest.work import Work
from retrieval.models import Sync, SyncItem

logger = logging.getLogger(__name__)

#: Messages that a listing sends.
_MAX_WAKES: Final = 8

Wake = Callable[[], None]


def work_through(wake: Wake = lambda: None) -> None:
    """Do what is to be done until there is nothing left; `wake` is called when there is enough for other workers too.

    The next sync is begun before more items are taken, so that a large source holds up no small one for long.
    """
    worker = uuid4()
    try:
        while begin_next(worker, wake) or take_next(worker) or settle_next():
            pass
    except (KeyboardInterrupt, SystemExit):
        claims.release(worker)
        raise


def begin_next(worker: UUID, wake: Wake = lambda: None) -> bool:
    """List the source of the sync that has waited longest and can begin; return whether there was one."""
    return any(_begin(sync, worker, wake) for sync in startable())


def startable() -> list[Sync]:
    """Return the syncs whose source is to be listed, oldest first: those that wait, and those whose process died."""
    open_syncs = Sync.objects.filter(status__in=Sync.OPEN).order_by("queued_at")
    syncs = list(open_syncs.select_related("connection", "connection__compartment"))
    busy = {sync.connection_id for sync in syncs if sync.status == Sync.Status.RUNNING and is_alive(sync)}
    running = [sync for sync in syncs if sync.status == Sync.Status.RUNNING]
    orphans = [sync for sync in running if not is_alive(sync) and (sync.is_private or sync.listed_at is None)]
    working = {sync.connection_id for sync in syncs if sync.status in {Sync.Status.RUNNING, Sync.Status.CANCELLING}}
    waiting = [sync for sync in syncs if sync.status == Sync.Status.QUEUED and sync.connection_id not in busy | working]
    return [*orphans, *waiting]


def _begin(sync: Sync, worker: UUID, wake: Wake) -> bool:
    """List a sync's source; return whether that was ours to do."""
    with suppress(SyncRunningError, SyncEndedError), only_sync_of(sync.connection):
        reload(sync)
        if sync.status not in {Sync.Status.QUEUED, Sync.Status.RUNNING} or is_alive(sync):
            return True
        begin(sync, is_private=False)
        try:
            with failing(sync):
                _list(sync, worker, wake)
        except CoreCubeError as error:
            logger.info("sync.failed connection=%s error=%s", sync.connection.slug, type(error).__name__)
        return True
    return False


def _list(sync: Sync, worker: UUID, wake: Wake) -> None:
    require_enabled(sync.connection)
    job = job_of(sync)
    wakes = iter(range(_MAX_WAKES))

    def wake_another(_: Sync) -> None:
        # One more worker for each of the first pages; whoever finds nothing to do ends at once.
        if next(wakes, None) is not None:
            wake()

    steps = new_steps()
    with Watchdog(sync, worker, steps):
        if sync.kind == Sync.Kind.RETRY:
            Sync.objects.filter(pk=sync.pk).update(listed_at=timezone.now(), stage=Sync.Stage.WORKING)
            wake_another(sync)
        else:
            Listing(job, wake_another, steps).run()


def take_next(worker: UUID) -> bool:
    """Take in a batch of items of the sync whose turn it is; return whether there were any."""
    claims.return_lost()
    sync = claims.fair_sync()
    if sync is None:
        return False
    try:
        steps = new_steps()
        with failing(sync), _dropping(sync, worker), Watchdog(sync, worker, steps):
            Work(job_of(sync), worker, lambda _: None, steps).batch()
    except CoreCubeError as error:
        logger.info("sync.failed connection=%s error=%s", sync.connection.slug, type(error).__name__)
    return True


@contextmanager
def _dropping(sync: Sync, worker: UUID) -> Iterator[None]:
    """Forget what the worker holds when the sync has ended meanwhile."""
    try:
        yield
    except SyncEndedError:
        claims.drop(sync, worker)
        raise


def settle_next() -> bool:
    """End a sync that has nothing left to do; return whether there was one that others are not ending already."""
    left = SyncItem.objects.filter(sync_id=OuterRef("pk"), state__in=(SyncItem.State.QUEUED, SyncItem.State.RUNNING))
    finished = claims.shared_syncs().filter(~Exists(left), listed_at__isnull=False)
    return any(_settle(sync) for sync in finished.select_related("connection", "connection__compartment"))


def _settle(sync: Sync) -> bool:
    with suppress(SyncRunningError, SyncEndedError), only_sync_of(sync.connection):
        reload(sync)
        if sync.status == Sync.Status.RUNNING and not has_work_left(sync):
            steps = new_steps()
            with failing(sync), Watchdog(sync, uuid4(), steps):
                settle(sync, steps)
            logger.info("sync.%s connection=%s chunks=%d", sync.status, sync.connection.slug, sync.chunks)
        return True
    return False


def has_something_to_do() -> bool:
    """Return whether a worker that looks now would find anything."""
    return (
        bool(startable())
        or claims.fair_sync() is not None
        or SyncItem.objects.filter(state=SyncItem.State.RUNNING, heartbeat_at__lt=alive_since()).exists()
        or _has_finished()
    )


def _has_finished() -> bool:
    left = SyncItem.objects.filter(sync_id=OuterRef("pk"), state__in=(SyncItem.State.QUEUED, SyncItem.State.RUNNING))
    return claims.shared_syncs().filter(~Exists(left), listed_at__isnull=False).exists()
