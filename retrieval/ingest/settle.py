"""The end of a sync: what is gone is deleted, what failed is listed, counts and repeated texts are put in order."""

from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from corecube.models import Connection
from retrieval.index.bm25.follower import keep_up
from retrieval.index.common_mentions import count_common, count_common_when_due, note_changes
from retrieval.index.graph_writer import fill_graph
from retrieval.index.salience import fill_salience
from retrieval.index.writer import delete_documents, fold_term_counts, mark_repeated, refresh_statistics
from retrieval.ingest.encodings import fill_encodings_or_say
from retrieval.ingest.enrich.soon import enrich_soon
from retrieval.ingest.problems import keep_problems_of
from retrieval.ingest.run import SyncEndedError, reload
from retrieval.ingest.steps import Steps
from retrieval.models import Document, Sync, SyncItem, TermFrequency

#: Chunks after which the planner's statistics are worth refreshing.
_MANY_CHUNKS: Final = 1000
#: Documents that one transaction deletes.
_DELETED_AT_ONCE: Final = 1000
_STATE = SyncItem.State


def has_work_left(sync: Sync) -> bool:
    """Return whether items of a sync still wait or are worked on."""
    return sync.items.filter(state__in=(_STATE.QUEUED, _STATE.RUNNING)).exists()


def settle(sync: Sync, steps: Steps) -> None:
    """End a sync whose items are all done or failed: as DONE, or as STOPPED when too much would be deleted.

    Cut off half-way it can be done again. The caller holds the connection's lock. Raises SyncEndedError.
    """
    Sync.objects.filter(pk=sync.pk, status=Sync.Status.RUNNING).update(stage=Sync.Stage.SETTLING)
    if sync.kind == Sync.Kind.DRY_RUN:
        # The listing left in its message what it did not open.
        end(sync, Sync.Status.DONE, sync.message)
        return
    if sync.kind == Sync.Kind.FULL:
        keep_problems_of(sync)
    if refusal := _refusal(sync):
        tidy(sync.connection, steps.require_wanted)
        end(sync, Sync.Status.STOPPED, refusal)
        return
    _delete_gone(sync)
    tidy(sync.connection, steps.require_wanted)
    end(sync, Sync.Status.DONE)
    if sync.kind != Sync.Kind.RETRY:
        Connection.objects.filter(pk=sync.connection_id).update(last_synced_at=sync.started_at)
    enrich_soon(sync.connection)


def end(sync: Sync, status: Sync.Status, message: str = "") -> None:
    """Store how a running sync ended and forget what it did item by item; raise SyncEndedError when it has already."""
    with transaction.atomic():
        running = Sync.objects.filter(pk=sync.pk, status=Sync.Status.RUNNING)
        if not running.update(status=status, stage="", finished_at=timezone.now(), message=message):
            raise SyncEndedError
        forget_items(sync)
    reload(sync)


def forget_items(sync: Sync) -> None:
    """Forget a sync's items but those that failed, which may be tried again; of earlier syncs, all.

    The few that a dry run names are kept until the next full one.
    """
    if sync.kind == Sync.Kind.DRY_RUN:
        return
    sync.items.exclude(state=_STATE.FAILED).delete()
    if sync.kind == Sync.Kind.FULL:
        earlier = SyncItem.objects.filter(sync__connection=sync.connection_id, sync__queued_at__lt=sync.queued_at)
        earlier.exclude(sync__status__in=Sync.OPEN).delete()


def tidy(connection: Connection, progress: Callable[[], None] = lambda: None) -> None:
    """Put counts, repeated texts, salience and graph of a connection in order, those of a sync that was cut off too.

    The BM25 index of this machine follows, unless another process is at that. `progress` is called between the parts;
    what it raises ends the work, which can be done again.
    """
    tidy_searched(connection)
    progress()
    if fill_graph(connection.pk):
        count_common(connection.pk)
    else:
        count_common_when_due(connection.pk)
    progress()
    fill_encodings_or_say(connection.pk, progress)
    progress()
    keep_up()


def tidy_searched(connection: Connection) -> None:
    """Put in order what every search reads of a connection: counts, repeated texts, salience."""
    # Every addition has a row for the empty lexeme, so more than one of them means that nobody summed them.
    additions = TermFrequency.objects.filter(connection_id=connection.pk, lexeme="").count()
    if additions > 1:
        note_changes(connection.pk)
        fold_term_counts(connection.pk)
    if additions >= _MANY_CHUNKS:
        refresh_statistics()
    mark_repeated(connection.pk)
    fill_salience(connection.pk)


def _refusal(sync: Sync) -> str:
    """Return why nothing is to be deleted, empty when that may be done."""
    gone = sync.items.filter(state=_STATE.GONE).count() + sync.deleted
    known = Document.objects.filter(connection=sync.connection).count() - sync.added + sync.deleted
    if gone and not sync.seen and not sync.allow_deletions:
        return (
            f"The source holds nothing now, and {known} documents of it are stored; nothing was deleted. Check that it "
            "is mounted on the worker's machine. If it is meant to be empty, confirm the deletion to go on."
        )
    if sync.allow_deletions or gone <= 1 or gone * 100 <= known * settings.CORECUBE_DELETE_GUARD_PERCENT:
        return ""
    share = f"{gone} of {known} documents are gone from the source"
    return f"{share}; nothing was deleted. Confirm the deletion to go on."


def _delete_gone(sync: Sync) -> None:
    """Delete what the source no longer holds, a page at a time."""
    while gone := list(sync.items.filter(state=_STATE.GONE).values_list("document_id", flat=True)[:_DELETED_AT_ONCE]):
        with transaction.atomic():
            delete_documents(gone)
            sync.items.filter(document_id__in=gone).delete()
            running = Sync.objects.filter(pk=sync.pk, status=Sync.Status.RUNNING)
            if not running.update(deleted=F("deleted") + len(gone)):
                raise SyncEndedError
