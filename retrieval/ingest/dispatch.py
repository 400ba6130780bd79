"""What a worker does next: list the source of a waiting sync, process items, complete a sync, or encode sentences.

Any number of workers in any number of processes may do this at once; the rows hold the work, and a message to a worker
only wakes it.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final
from uuid import UUID, uuid4

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from corecube import tracing
from corecube.errors import CoreCubeError
from retrieval.errors import SyncRunningError
from retrieval.ingest import claims
from retrieval.ingest.claims import sync_lock
from retrieval.ingest.completion import complete, has_open_items
from retrieval.ingest.encodings import encode_next
from retrieval.ingest.listing import Listing
from retrieval.ingest.run import SyncEndedError, job_of, reload
from retrieval.ingest.sync import is_alive, recording_failure, require_enabled, start
from retrieval.ingest.watchdog import Watchdog, new_steps
from retrieval.ingest.work import Work
from retrieval.models import Sync, SyncItem

logger = logging.getLogger(__name__)

_MAX_WAKES: Final = 8

Wake = Callable[[], None]


def work_until_idle(wake: Wake = lambda: None) -> None:
    """Work until nothing is left; `wake` is called when there is enough work for other workers too.

    The next sync is listed before more items are processed, so that a large source does not delay a small one for long.
    Sentences wait until all syncs are complete: searches and answers do without their vectors.
    """
    worker = uuid4()
    try:
        while list_next(worker, wake) or process_next(worker) or complete_next() or encode_next():
            pass
    except (KeyboardInterrupt, SystemExit):
        claims.release(worker)
        raise


def list_next(worker: UUID, wake: Wake = lambda: None) -> bool:
    """List the source of the sync that has waited longest and can start; return whether there was one."""
    return any(_list(sync, worker, wake) for sync in startable())


def startable() -> list[Sync]:
    """Return the syncs whose source has to be listed: those whose process died, then queued ones, oldest first."""
    open_syncs = Sync.objects.filter(status__in=Sync.OPEN).order_by("queued_at")
    syncs = list(open_syncs.select_related("connection", "connection__compartment"))
    running = [sync for sync in syncs if sync.status == Sync.Status.RUNNING]
    orphans = [sync for sync in running if not is_alive(sync) and (sync.is_private or sync.listed_at is None)]
    busy = {sync.connection_id for sync in syncs if sync.status in {Sync.Status.RUNNING, Sync.Status.CANCELLING}}
    queued = [sync for sync in syncs if sync.status == Sync.Status.QUEUED and sync.connection_id not in busy]
    return [*orphans, *queued]


def _list(sync: Sync, worker: UUID, wake: Wake) -> bool:
    """List a sync's source; return False when another process does that or the sync has ended."""
    with suppress(SyncRunningError, SyncEndedError), sync_lock(sync.connection):
        reload(sync)
        if sync.status not in {Sync.Status.QUEUED, Sync.Status.RUNNING} or is_alive(sync):
            return True
        start(sync, is_private=False)
        with _logging_failure(sync), recording_failure(sync), _traced("list", sync):
            _list_source(sync, worker, wake)
        return True
    return False


def _traced(step: str, sync: Sync) -> AbstractContextManager[object]:
    return tracing.span(f"sync {step}", corecube__sync_id=str(sync.pk), corecube__kind=sync.connection.kind)


@contextmanager
def _logging_failure(sync: Sync) -> Iterator[None]:
    """Log an error that the sync's row has already, and continue with other syncs."""
    try:
        yield
    except CoreCubeError as error:
        logger.info("sync.failed connection=%s error=%s", sync.connection.slug, type(error).__name__)


def _list_source(sync: Sync, worker: UUID, wake: Wake) -> None:
    require_enabled(sync.connection)
    job = job_of(sync)
    wakes = iter(range(_MAX_WAKES))

    def wake_another(_: Sync) -> None:
        # One more worker for each of the first pages; a worker without work ends at once.
        if next(wakes, None) is not None:
            wake()

    steps = new_steps()
    with Watchdog(sync, worker, steps):
        if sync.kind == Sync.Kind.RETRY:
            Sync.objects.filter(pk=sync.pk).update(listed_at=timezone.now(), stage=Sync.Stage.WORKING)
            wake_another(sync)
        else:
            Listing(job, wake_another, steps).run()


def process_next(worker: UUID) -> bool:
    """Process a batch of items of the sync with the fewest running claims; return whether there were any."""
    claims.release_lost()
    sync = claims.next_sync()
    if sync is None:
        return False
    steps = new_steps()
    with _logging_failure(sync), recording_failure(sync), _traced("process", sync):
        try:
            with Watchdog(sync, worker, steps):
                Work(job_of(sync), worker, lambda _: None, steps).process_batch()
        except SyncEndedError:
            claims.delete_claimed(sync, worker)
            raise
    return True


def complete_next() -> bool:
    """Complete a sync without open items; return whether there was one that no other process completes."""
    return any(_complete(sync) for sync in _finished().select_related("connection", "connection__compartment"))


def _finished() -> QuerySet[Sync]:
    left = SyncItem.objects.filter(sync_id=OuterRef("pk"), state__in=(SyncItem.State.QUEUED, SyncItem.State.RUNNING))
    return claims.shared_syncs().filter(~Exists(left), listed_at__isnull=False)


def _complete(sync: Sync) -> bool:
    with suppress(SyncRunningError, SyncEndedError), sync_lock(sync.connection):
        reload(sync)
        if sync.status == Sync.Status.RUNNING and not has_open_items(sync):
            steps = new_steps()
            with recording_failure(sync), _traced("complete", sync), Watchdog(sync, uuid4(), steps):
                complete(sync, steps)
            logger.info("sync.%s connection=%s chunks=%d", sync.status, sync.connection.slug, sync.chunks)
        return True
    return False


def has_work() -> bool:
    """Return whether a worker would find work now."""
    return (
        bool(startable())
        or claims.next_sync() is not None
        or SyncItem.objects.filter(state=SyncItem.State.RUNNING, heartbeat_at__lt=claims.alive_since()).exists()
        or _finished().exists()
    )
