"""Claims: which worker processes which item, the outcome, and the items of a lost worker; and the locks of syncs.

A claim is a row that names its worker; only the worker that holds it may store the document. Several processes change
the rows of one sync. Each locks documents first, then items by their keys, and the sync last, which rules out
deadlocks.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, F, IntegerField, OuterRef, Q, QuerySet
from django.db.models.functions import Cast, Now
from django.utils import timezone

from corecube.models import Connection
from retrieval.errors import SyncRunningError
from retrieval.index.reading import advisory_lock, rows
from retrieval.ingest.encode import ClaimLostError
from retrieval.ingest.problems import TRANSIENT, clear_problems, record_problems
from retrieval.models import Sync, SyncItem

CLAIMED_AT_ONCE: Final = 64
MAX_ATTEMPTS: Final = 5  #: Tries of an item, for a source that is down for a while and for workers that die on it.
_FIRST_WAIT_SECONDS: Final = 2.0
_WAIT_FACTOR: Final = 4.0
_MAX_WAIT_SECONDS: Final = 600.0
LOST: Final = "lost"  #: Why an item waits whose worker ended, perhaps because of it.
_LOST_MESSAGE: Final = "Every worker process that tried it ended unexpectedly."
_STATE = SyncItem.State
#: First key of the advisory locks that keep two processes from listing or ending the syncs of one connection at once.
_LOCK_CLASS: Final = 7_301


def alive_since() -> datetime:
    """Return the moment after which the last heartbeat of a live process lies."""
    return timezone.now() - timedelta(seconds=settings.CORECUBE_LOST_SECONDS)


def record_heartbeat(sync_id: UUID, worker: UUID) -> None:
    """Store a heartbeat for a running sync and for the worker's claims of it."""
    now = timezone.now()
    with transaction.atomic():
        claimed = SyncItem.objects.filter(worker=worker, state=_STATE.RUNNING, sync_id=sync_id)
        lock_items(claimed).update(heartbeat_at=now)
        Sync.objects.filter(pk=sync_id, status=Sync.Status.RUNNING).update(heartbeat_at=now)


def next_sync() -> Sync | None:
    """Return the sync with claimable items that has the fewest running claims, then the oldest; None without any."""
    due = claimable().filter(sync_id=OuterRef("pk"))
    syncs = list(shared_syncs().filter(Exists(due)).select_related("connection", "connection__compartment"))
    running = SyncItem.objects.filter(sync__in=syncs, state=_STATE.RUNNING).order_by()
    claims = dict(running.values_list("sync_id").annotate(Count("pk")))
    return min(syncs, key=lambda sync: (claims.get(sync.pk, 0), sync.started_at, sync.pk), default=None)


def shared_syncs() -> QuerySet[Sync]:
    """Return the running syncs whose items any worker may claim."""
    return Sync.objects.filter(status=Sync.Status.RUNNING, is_private=False)


def claimable() -> QuerySet[SyncItem]:
    """Return the items that wait and may be tried now."""
    return SyncItem.objects.filter(Q(next_try_at=None) | Q(next_try_at__lte=Now()), state=_STATE.QUEUED)


def claim(sync: Sync, worker: UUID, *, limit: int = CLAIMED_AT_ONCE) -> list[SyncItem]:
    """Claim the next items of a sync and return them, in the source's order; no other worker gets the same ones.

    An item whose worker ended comes last and alone, so that it affects no other item.
    """
    now = timezone.now()
    with transaction.atomic():
        free = claimable().filter(sync=sync).select_for_update(skip_locked=True)
        items = list(free.exclude(reason=LOST).order_by("pk")[:limit])
        items = items or list(free.filter(reason=LOST).order_by("attempts", "pk")[:1])
        begun = {"state": _STATE.RUNNING, "stage": SyncItem.Stage.PARSING, "chunks": 0, "embedded": 0}
        claimed = SyncItem.objects.filter(pk__in=[item.pk for item in items])
        claimed.update(**begun, worker=worker, heartbeat_at=now, attempts=F("attempts") + 1)
    for item in items:
        item.attempts += 1
    return items


def set_storing(items: Sequence[int], worker: UUID) -> None:
    """Record that all chunks of claimed items are embedded."""
    with transaction.atomic():
        lock_items(claimed_by(worker, items)).update(stage=SyncItem.Stage.STORING, embedded=F("chunks"))


def set_embedded_share(items: Sequence[int], worker: UUID, share: float) -> None:
    """Record which share, 0 to 1, of the chunks of claimed items is embedded."""
    with transaction.atomic():
        lock_items(claimed_by(worker, items)).update(embedded=Cast(F("chunks") * share, IntegerField()))


def claimed_by(worker: UUID, items: Sequence[int]) -> QuerySet[SyncItem]:
    """Return those of the items that the worker still holds."""
    return SyncItem.objects.filter(pk__in=list(items), worker=worker, state=_STATE.RUNNING)


def finish(item: int, worker: UUID, *, sync: Sync, outcome: SyncItem.Outcome, chunks: int = 0) -> None:
    """Mark a claimed item as done and count it; raise ClaimLostError when the worker no longer holds it.

    Called in the transaction that stores the document, so that a document is stored and counted once or not at all.
    """
    done = {"state": _STATE.DONE, "stage": "", "outcome": outcome, "chunks": chunks, "reason": ""}
    if not claimed_by(worker, [item]).update(**done):
        raise ClaimLostError
    clear_problems(sync.connection_id, SyncItem.objects.filter(pk=item).values_list("external_id", flat=True))
    counts = {outcome.value: F(outcome.value) + 1, "chunks": F("chunks") + chunks}
    if not Sync.objects.filter(pk=sync.pk, status=Sync.Status.RUNNING).update(**counts):
        raise ClaimLostError


def finish_unchanged(items: Sequence[int], worker: UUID, *, sync: Sync) -> None:
    """Mark claimed items as done because the store has them already, and count them."""
    with transaction.atomic():
        claimed = lock_items(claimed_by(worker, items))
        count = claimed.update(state=_STATE.DONE, stage="", outcome=SyncItem.Outcome.UNCHANGED, reason="")
        clear_problems(sync.connection_id, claimed.values_list("external_id", flat=True))
        Sync.objects.filter(pk=sync.pk).update(unchanged=F("unchanged") + count)


def fail_or_retry(item: SyncItem, worker: UUID, *, sync: Sync, reason: str, message: str) -> None:
    """Mark a claimed item as failed, or as waiting for the next try when the reason is transient."""
    if reason in TRANSIENT and item.attempts < MAX_ATTEMPTS:
        next_try_at = timezone.now() + timedelta(seconds=wait_seconds(item.attempts))
        claimed_by(worker, [item.pk]).update(
            state=_STATE.QUEUED, stage="", worker=None, reason=reason, message=message, next_try_at=next_try_at
        )
        return
    fail(claimed_by(worker, [item.pk]), sync_id=sync.pk, reason=reason, message=message)


def fail(items: QuerySet[SyncItem], *, sync_id: UUID, reason: str, message: str) -> None:
    """Mark items of one sync as failed, and count them."""
    with transaction.atomic():
        failing = lock_items(items)
        count = failing.update(
            state=_STATE.FAILED, stage="", worker=None, reason=reason, message=message, next_try_at=None
        )
        record_problems(failing.select_related("sync"))
        Sync.objects.filter(pk=sync_id).update(failed=F("failed") + count)


def wait_seconds(attempts: int, draw: Callable[[], float] = random.random) -> float:
    """Return the seconds until the next try: 2, 8, 32 ... up to 600, each times a random factor from 0.5 to 1.5.

    `attempts` were made so far, at least one; `draw` gives a number from 0 to 1.
    """
    wait = min(_FIRST_WAIT_SECONDS * _WAIT_FACTOR ** (attempts - 1), _MAX_WAIT_SECONDS)
    return wait * (0.5 + draw())


def release(worker: UUID) -> None:
    """Release a worker's claims; the tries do not count."""
    with transaction.atomic():
        claimed = lock_items(SyncItem.objects.filter(worker=worker, state=_STATE.RUNNING))
        claimed.update(state=_STATE.QUEUED, stage="", worker=None, attempts=F("attempts") - 1)


def release_lost(sync: Sync | None = None) -> None:
    """Release the claims of workers without a recent heartbeat, or all of a sync; out of tries, an item fails."""
    running = SyncItem.objects.filter(state=_STATE.RUNNING)
    release_ended(running.filter(sync=sync) if sync else running.filter(heartbeat_at__lt=alive_since()))


def release_ended(items: QuerySet[SyncItem], message: str = _LOST_MESSAGE) -> None:
    """Release running items whose worker ended; those without tries left fail."""
    for sync_id in items.order_by().values_list("sync_id", flat=True).distinct():
        exhausted = items.filter(sync_id=sync_id, attempts__gte=MAX_ATTEMPTS)
        fail(exhausted, sync_id=sync_id, reason=LOST, message=message)
    with transaction.atomic():
        lock_items(items).update(state=_STATE.QUEUED, stage="", worker=None, reason=LOST, message=message)


def delete_claimed(sync: Sync, worker: UUID) -> None:
    """Delete the items that a worker holds of a sync that was cancelled."""
    with transaction.atomic():
        lock_items(SyncItem.objects.filter(sync=sync, worker=worker, state=_STATE.RUNNING)).delete()


@contextmanager
def sync_lock(connection: Connection) -> Iterator[None]:
    """Hold the connection's advisory lock, which ends with the process. Raises SyncRunningError if it is held."""
    with advisory_lock(_LOCK_CLASS, connection.pk) as is_ours:
        if not is_ours:
            raise SyncRunningError
        yield


def is_locked(connection_id: int) -> bool:
    """Return whether a process holds the connection's lock, without taking it."""
    held = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND classid = %s AND objid = %s"
    return bool(rows(held, [_LOCK_CLASS, connection_id]))


def lock_items(items: QuerySet[SyncItem]) -> QuerySet[SyncItem]:
    """Lock items in the order of their keys until the caller's transaction ends, and return them."""
    keys = items.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True)
    return SyncItem.objects.filter(pk__in=list(keys))
