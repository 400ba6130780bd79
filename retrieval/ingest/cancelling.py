"""Cancelling a sync: it is being cancelled until nobody works on it any more, and only then it is cancelled."""

from django.db import transaction
from django.utils import timezone

from retrieval.errors import SyncRunningError
from retrieval.ingest import claims
from retrieval.ingest.lock import only_sync_of
from retrieval.ingest.settle import forget_items, tidy_searched
from retrieval.models import Sync


def ask_to_cancel(sync: Sync) -> bool:
    """Let workers stop a sync that waits or runs; return whether it did."""
    rows = Sync.objects.filter(pk=sync.pk)
    if rows.filter(status=Sync.Status.QUEUED).update(status=Sync.Status.CANCELLED, finished_at=timezone.now()):
        forget_items(sync)
        return True
    if not rows.filter(status=Sync.Status.RUNNING).update(status=Sync.Status.CANCELLING, stage=""):
        return False
    # In a transaction of its own: a worker that is storing holds its item and waits for the sync. What is claimed stays
    # until its worker has stopped.
    sync.items.exclude(state__in=("failed", "running")).delete()
    return True


def finish_cancelled(sync: Sync, *, is_ours: bool = False) -> bool:
    """End a sync that is being cancelled, unless somebody still works on it; return whether it has ended.

    What it stored is put in order first where the caller worked on it (`is_ours`); else the next sync does that.
    """
    if not Sync.objects.filter(pk=sync.pk, status=Sync.Status.CANCELLING).exists():
        return True
    try:
        with only_sync_of(sync.connection):
            if not sync.is_private and claims.in_hand(sync).exists():
                return False
            if is_ours:
                tidy_searched(sync.connection)
            _end(sync)
    except SyncRunningError:
        # Whoever lists or settles it ends it.
        return False
    return True


def finish_all_cancelled() -> None:
    """End every sync that is being cancelled and that nobody works on, as when its workers were killed."""
    for sync in Sync.objects.filter(status=Sync.Status.CANCELLING).select_related("connection"):
        finish_cancelled(sync)


def _end(sync: Sync) -> None:
    with transaction.atomic():
        cancelling = Sync.objects.filter(pk=sync.pk, status=Sync.Status.CANCELLING)
        if cancelling.update(status=Sync.Status.CANCELLED, stage="", finished_at=timezone.now()):
            forget_items(sync)
