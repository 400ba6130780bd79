"""The end of a sync: deletions, problems, counts and repeated texts are updated, and its status is stored."""

from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from corecube.models import Connection
from retrieval.errors import SyncRunningError
from retrieval.index.graph_writer import count_common, count_common_when_due, fill_graph, note_changes
from retrieval.index.read_models import keep_up
from retrieval.index.salience import fill_salience
from retrieval.index.writer import delete_documents, fold_term_counts, mark_repeated, refresh_statistics
from retrieval.ingest import claims
from retrieval.ingest.claims import sync_lock
from retrieval.ingest.encodings import fill_optional_or_log
from retrieval.ingest.enrich.tasks import queue_enrichment
from retrieval.ingest.run import Steps, SyncEndedError, reload
from retrieval.models import Document, Sync, SyncItem, SyncProblem, TermFrequency

_MANY_CHUNKS: Final = 1000  #: Chunks after which the planner's statistics are worth refreshing.
_DELETED_AT_ONCE: Final = 1000
_STATE = SyncItem.State


def has_open_items(sync: Sync) -> bool:
    """Return whether items of a sync are queued or claimed."""
    return sync.items.filter(state__in=(_STATE.QUEUED, _STATE.RUNNING)).exists()


def complete(sync: Sync, steps: Steps) -> None:
    """End a sync whose items are all done or failed: as DONE, or as STOPPED when too much would be deleted.

    It can be repeated after an interruption. The caller holds the connection's lock. Raises SyncEndedError.
    """
    Sync.objects.filter(pk=sync.pk, status=Sync.Status.RUNNING).update(stage=Sync.Stage.SETTLING)
    if sync.kind == Sync.Kind.DRY_RUN:
        # The listing stored the number of unopened files in the message.
        end(sync, Sync.Status.DONE, sync.message)
        return
    if sync.kind == Sync.Kind.FULL:
        # Items that did not fail in a full sync are indexed by now, or gone.
        failed = sync.items.filter(state=_STATE.FAILED).values("external_id")
        SyncProblem.objects.filter(connection=sync.connection).exclude(external_id__in=failed).delete()
    if refusal := _deletion_refusal(sync):
        update_derived(sync.connection, steps.require_wanted)
        end(sync, Sync.Status.STOPPED, refusal)
        return
    while gone := list(sync.items.filter(state=_STATE.GONE).values_list("document_id", flat=True)[:_DELETED_AT_ONCE]):
        with transaction.atomic():
            delete_documents(gone)
            sync.items.filter(document_id__in=gone).delete()
            running = Sync.objects.filter(pk=sync.pk, status=Sync.Status.RUNNING)
            if not running.update(deleted=F("deleted") + len(gone)):
                raise SyncEndedError
    update_derived(sync.connection, steps.require_wanted)
    end(sync, Sync.Status.DONE)
    if sync.kind != Sync.Kind.RETRY:
        Connection.objects.filter(pk=sync.connection_id).update(last_synced_at=sync.started_at)
    queue_enrichment(sync.connection)


def end(sync: Sync, status: Sync.Status, message: str = "") -> None:
    """Store how a running sync ended and delete its items; raise SyncEndedError when it has ended already."""
    with transaction.atomic():
        running = Sync.objects.filter(pk=sync.pk, status=Sync.Status.RUNNING)
        if not running.update(status=status, stage="", finished_at=timezone.now(), message=message):
            raise SyncEndedError
        delete_items(sync)
    reload(sync)


def delete_items(sync: Sync) -> None:
    """Delete a sync's items except failed ones, and those of earlier syncs; a dry run's stay until a full sync."""
    if sync.kind == Sync.Kind.DRY_RUN:
        return
    sync.items.exclude(state=_STATE.FAILED).delete()
    if sync.kind == Sync.Kind.FULL:
        earlier = SyncItem.objects.filter(sync__connection=sync.connection_id, sync__queued_at__lt=sync.queued_at)
        earlier.exclude(sync__status__in=Sync.OPEN).delete()


def update_derived(connection: Connection, progress: Callable[[], None] = lambda: None) -> None:
    """Bring counts, repeated texts, salience, graph and encodings of a connection up to date.

    The read models of this machine follow, unless another process updates them. `progress` is called between the parts;
    an exception from it ends the work, which can be repeated.
    """
    _update_search_data(connection)
    progress()
    if fill_graph(connection.pk):
        count_common(connection.pk)
    else:
        count_common_when_due(connection.pk)
    progress()
    fill_optional_or_log(connection.pk, progress)
    progress()
    keep_up()


def _update_search_data(connection: Connection) -> None:
    # Every addition has a row for the empty lexeme, so more than one of them means that they are not summed yet.
    additions = TermFrequency.objects.filter(connection_id=connection.pk, lexeme="").count()
    if additions > 1:
        note_changes(connection.pk)
        fold_term_counts(connection.pk)
    if additions >= _MANY_CHUNKS:
        refresh_statistics()
    mark_repeated(connection.pk)
    fill_salience(connection.pk)


def _deletion_refusal(sync: Sync) -> str:
    gone = sync.items.filter(state=_STATE.GONE).count() + sync.deleted
    known = Document.objects.filter(connection=sync.connection).count() - sync.added + sync.deleted
    if gone and not sync.seen and not sync.allow_deletions:
        return (
            f"The source is empty, but {known} of its documents are stored. Nothing was deleted. Check that it is "
            "mounted on the worker's machine. If it is meant to be empty, confirm the deletion to continue."
        )
    if sync.allow_deletions or gone <= 1 or gone * 100 <= known * settings.CORECUBE_DELETE_GUARD_PERCENT:
        return ""
    share = f"{gone} of {known} documents are gone from the source"
    return f"{share}. Nothing was deleted. Confirm the deletion to continue."


def request_cancel(sync: Sync) -> bool:
    """Cancel a queued sync, or have workers stop a running one; return False for a sync that is neither."""
    rows = Sync.objects.filter(pk=sync.pk)
    if rows.filter(status=Sync.Status.QUEUED).update(status=Sync.Status.CANCELLED, finished_at=timezone.now()):
        delete_items(sync)
        return True
    if not rows.filter(status=Sync.Status.RUNNING).update(status=Sync.Status.CANCELLING, stage=""):
        return False
    # In a separate transaction: a worker that is storing holds its item and waits for the sync. Claimed items stay
    # until their worker has stopped.
    sync.items.exclude(state__in=("failed", "running")).delete()
    return True


def finish_cancelled(sync: Sync, *, worked_here: bool = False) -> bool:
    """End a sync that is being cancelled, unless a process still works on it; return whether it has ended.

    Where this process worked on it, what it stored is brought up to date first; otherwise the next sync does that.
    """
    cancelling = Sync.objects.filter(pk=sync.pk, status=Sync.Status.CANCELLING)
    if not cancelling.exists():
        return True
    try:
        with sync_lock(sync.connection):
            # Claims whose workers sent a recent heartbeat.
            active = sync.items.filter(state=_STATE.RUNNING, heartbeat_at__gte=claims.alive_since())
            if not sync.is_private and active.exists():
                return False
            if worked_here:
                _update_search_data(sync.connection)
            with transaction.atomic():
                if cancelling.update(status=Sync.Status.CANCELLED, stage="", finished_at=timezone.now()):
                    delete_items(sync)
    except SyncRunningError:
        # The process that lists or completes it ends it.
        return False
    return True


def finish_all_cancelled() -> None:
    """End every sync that is being cancelled and that no process works on, for instance after its workers died."""
    for sync in Sync.objects.filter(status=Sync.Status.CANCELLING).select_related("connection"):
        finish_cancelled(sync)
