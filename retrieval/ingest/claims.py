"""Claims: which worker takes which item, what becomes of it, and what happens to a lost worker's items.

The rows are the truth. A claim is a row that says whose it is; whoever stores the document must still hold it.
"""

import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Exists, F, IntegerField, OuterRef, Q, QuerySet
from django.db.models.functions import Cast, Now
from django.utils import timezone

from retrieval.ingest.encode import ClaimLostError
from retrieval.ingest.heartbeat import alive_since
from retrieval.ingest.locking import locked
from retrieval.ingest.problems import note_problems, solve_problems
from retrieval.ingest.reasons import TRANSIENT
from retrieval.models import Sync, SyncItem

#: Items that are claimed at once.
CLAIMED_AT_ONCE: Final = 64
#: Tries that an item gets: of a source that is down for a while, and of workers that die over it.
MAX_ATTEMPTS: Final = 5
_FIRST_WAIT_SECONDS: Final = 2.0
_WAIT_FACTOR: Final = 4.0
_MAX_WAIT_SECONDS: Final = 600.0
#: Why an item waits that a worker ended over, perhaps because of it.
LOST: Final = "lost"
_LOST_MESSAGE: Final = "The process that took it in ended every time."
_STATE = SyncItem.State


def fair_sync() -> Sync | None:
    """Return the sync whose turn it is: of those with something to claim, the one with the fewest running claims.

    Ties go to the one that began first. None when nothing is to be claimed.
    """
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
    """Claim the next items of a sync and return them, in the source's order; nobody else gets the same ones.

    One that a worker ended over comes last and by itself, so that it takes no other with it.
    """
    now = timezone.now()
    with transaction.atomic():
        free = claimable().filter(sync=sync).select_for_update(skip_locked=True)
        items = list(free.exclude(reason=LOST).order_by("pk")[:limit])
        items = items or list(free.filter(reason=LOST).order_by("attempts", "pk")[:1])
        SyncItem.objects.filter(pk__in=[item.pk for item in items]).update(
            state=_STATE.RUNNING,
            stage=SyncItem.Stage.PARSING,
            chunks=0,
            embedded=0,
            worker=worker,
            heartbeat_at=now,
            attempts=F("attempts") + 1,
        )
    for item in items:
        item.attempts += 1
    return items


def enter_embedding(item: int, worker: UUID, *, chunks: int) -> None:
    """Say that a claimed item is parsed, and to how many chunks."""
    held([item], worker).update(stage=SyncItem.Stage.EMBEDDING, chunks=chunks)


def enter_storing(items: Sequence[int], worker: UUID) -> None:
    """Say that all chunks of claimed items are embedded."""
    with transaction.atomic():
        locked(held(items, worker)).update(stage=SyncItem.Stage.STORING, embedded=F("chunks"))


def note_embedded(items: Sequence[int], worker: UUID, share: float) -> None:
    """Say that this share, 0 to 1, of the chunks of claimed items has its vectors."""
    with transaction.atomic():
        locked(held(items, worker)).update(embedded=Cast(F("chunks") * share, IntegerField()))


def held(items: Sequence[int], worker: UUID) -> QuerySet[SyncItem]:
    """Return those of the items that the worker still holds."""
    return SyncItem.objects.filter(pk__in=list(items), worker=worker, state=_STATE.RUNNING)


def finish(item: int, worker: UUID, *, sync: Sync, outcome: SyncItem.Outcome, chunks: int = 0) -> None:
    """Mark a claimed item as done and count it; raise ClaimLostError when it is not the worker's any more.

    Called in the transaction that stores the document, so that a document is stored and counted once or not at all.
    """
    done = {"state": _STATE.DONE, "stage": "", "outcome": outcome, "chunks": chunks, "reason": ""}
    if not held([item], worker).update(**done):
        raise ClaimLostError
    solve_problems(sync.connection_id, SyncItem.objects.filter(pk=item).values_list("external_id", flat=True))
    counts = {outcome.value: F(outcome.value) + 1, "chunks": F("chunks") + chunks}
    if not Sync.objects.filter(pk=sync.pk, status=Sync.Status.RUNNING).update(**counts):
        raise ClaimLostError


def finish_unchanged(items: Sequence[int], worker: UUID, *, sync: Sync) -> None:
    """Mark claimed items as done because the store holds them already, and count them."""
    with transaction.atomic():
        mine = locked(held(items, worker))
        count = mine.update(state=_STATE.DONE, stage="", outcome=SyncItem.Outcome.UNCHANGED, reason="")
        solve_problems(sync.connection_id, mine.values_list("external_id", flat=True))
        Sync.objects.filter(pk=sync.pk).update(unchanged=F("unchanged") + count)


def put_back(item: SyncItem, worker: UUID, *, sync: Sync, reason: str, message: str) -> None:
    """Mark a claimed item as failed, or as waiting to be tried again when the reason may pass."""
    if reason in TRANSIENT and item.attempts < MAX_ATTEMPTS:
        next_try_at = timezone.now() + timedelta(seconds=wait_seconds(item.attempts))
        held([item.pk], worker).update(
            state=_STATE.QUEUED, stage="", worker=None, reason=reason, message=message, next_try_at=next_try_at
        )
        return
    fail(held([item.pk], worker), sync_id=sync.pk, reason=reason, message=message)


def fail(items: QuerySet[SyncItem], *, sync_id: UUID, reason: str, message: str) -> None:
    """Mark items of one sync as failed, and count them."""
    with transaction.atomic():
        failing = locked(items)
        count = failing.update(
            state=_STATE.FAILED, stage="", worker=None, reason=reason, message=message, next_try_at=None
        )
        note_problems(failing.select_related("sync"))
        Sync.objects.filter(pk=sync_id).update(failed=F("failed") + count)


def wait_seconds(attempts: int, draw: Callable[[], float] = random.random) -> float:
    """Return the seconds until the next try: 2, 8, 32 ... up to 600, each between half and one and a half times that.

    `attempts` were made so far, at least one; `draw` gives a number from 0 to 1.
    """
    wait = min(_FIRST_WAIT_SECONDS * _WAIT_FACTOR ** (attempts - 1), _MAX_WAIT_SECONDS)
    return wait * (0.5 + draw())


def release(worker: UUID) -> None:
    """Give back what a worker holds; the tries do not count."""
    with transaction.atomic():
        mine = locked(SyncItem.objects.filter(worker=worker, state=_STATE.RUNNING))
        mine.update(state=_STATE.QUEUED, stage="", worker=None, attempts=F("attempts") - 1)


def return_lost(sync: Sync | None = None) -> None:
    """Give back what workers hold that gave no sign of life, of every sync or, without waiting for that, of one.

    An item that several workers died over fails.
    """
    running = SyncItem.objects.filter(state=_STATE.RUNNING)
    return_ended(running.filter(sync=sync) if sync else running.filter(heartbeat_at__lt=alive_since()))


def return_ended(items: QuerySet[SyncItem], message: str = _LOST_MESSAGE) -> None:
    """Give back running items whose worker ended over them; those that were tried often enough fail."""
    for sync_id in items.order_by().values_list("sync_id", flat=True).distinct():
        deadly = items.filter(sync_id=sync_id, attempts__gte=MAX_ATTEMPTS)
        fail(deadly, sync_id=sync_id, reason=LOST, message=message)
    with transaction.atomic():
        locked(items).update(state=_STATE.QUEUED, stage="", worker=None, reason=LOST, message=message)


def drop(sync: Sync, worker: UUID) -> None:
    """Forget what a worker holds of a sync that nobody wants any more."""
    with transaction.atomic():
        locked(SyncItem.objects.filter(sync=sync, worker=worker, state=_STATE.RUNNING)).delete()


def in_hand(sync: Sync) -> QuerySet[SyncItem]:
    """Return the items of a sync that workers hold who gave a sign of life lately."""
    return SyncItem.objects.filter(sync=sync, state=_STATE.RUNNING, heartbeat_at__gte=alive_since())


def count_encoding(sync: Sync, seconds: float) -> None:
    """Add to the seconds that a sync's texts were in the encoder."""
    Sync.objects.filter(pk=sync.pk).update(encode_seconds=F("encode_seconds") + seconds)
