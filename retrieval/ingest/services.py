"""Starting syncs and taking uploads: writes that also enqueue work or leave an audit event."""

from collections.abc import Collection
from typing import IO, Final

from django.db import transaction
from django.db.models import F, Sum

from corecube import audit
from corecube.changing import changing
from corecube.connectors.upload import save_upload
from corecube.errors import InvalidRequestError
from corecube.models import Connection, User
from retrieval.ingest.cancelling import ask_to_cancel, finish_cancelled
from retrieval.ingest.listing import FILE_UPLOADED
from retrieval.ingest.problems import retryable
from retrieval.ingest.sync import require_enabled
from retrieval.ingest.tasks import wake_workers
from retrieval.models import Document, Sync, SyncItem, TermFrequency

_NOTHING_TO_RETRY: Final = (
    "Nothing of this sync can be tried again. What failed needs a change in the source first; sync again after it."
)


def queue_sync(
    connection: Connection, *, actor: User | None, allow_deletions: bool = False, dry_run: bool = False
) -> Sync:
    """Queue a sync for a worker and return it. One of the same kind that is queued already is returned as it is.

    A dry run stores nothing but how much it would add, change and delete. Raises ConnectionDisabledError.
    """
    require_enabled(connection)
    kind = Sync.Kind.DRY_RUN if dry_run else Sync.Kind.FULL
    with changing():
        sync, created = Sync.objects.get_or_create(
            connection=connection, status=Sync.Status.QUEUED, kind=kind, allow_deletions=allow_deletions
        )
        if created:
            audit.record(
                "connection.sync_queued",
                actor=actor,
                subject=connection.slug,
                allow_deletions=allow_deletions,
                kind=kind.value,
            )
        # Also for one that waits already: its message may be lost, and a second one finds nothing left to do.
        _wake_when_committed()
    return sync


def retry_failed(sync: Sync, *, actor: User | None, external_ids: Collection[str] | None = None) -> Sync:
    """Queue a sync of what failed in an earlier one, and of nothing else, and return it.

    `external_ids` are the only items of it that are tried; None is all. Raises ConnectionDisabledError, and
    InvalidRequestError when nothing is left for which another try can help: what could not even be listed, or stays as
    it is until its source changes, needs a full sync.
    """
    require_enabled(sync.connection)
    with changing():
        failed = retryable(sync.items.all())
        if external_ids is not None:
            failed = failed.filter(external_id__in=external_ids)
        count = failed.count()
        if sync.status in Sync.OPEN or not count:
            raise InvalidRequestError(_NOTHING_TO_RETRY)
        retry, created = Sync.objects.get_or_create(
            connection=sync.connection, status=Sync.Status.QUEUED, kind=Sync.Kind.RETRY, allow_deletions=False
        )
        failed.update(sync=retry, state=SyncItem.State.QUEUED, attempts=0, reason="", message="", next_try_at=None)
        Sync.objects.filter(pk=retry.pk).update(seen=F("seen") + count)
        if created:
            audit.record("connection.retry_queued", actor=actor, subject=sync.connection.slug, items=count)
        _wake_when_committed()
    retry.refresh_from_db()
    return retry


def cancel_sync(sync: Sync, *, actor: User | None) -> Sync:
    """End a sync that waits or runs, and return it; documents that are stored by then stay.

    It is CANCELLING until those who work on it have stopped, which takes seconds, and then CANCELLED. They store
    nothing more of it from now on. One that has ended is left as it is.
    """
    if ask_to_cancel(sync):
        audit.record("connection.sync_cancelled", actor=actor, subject=sync.connection.slug)
    finish_cancelled(sync)
    sync.refresh_from_db()
    return sync


def _wake_when_committed() -> None:
    transaction.on_commit(wake_workers)


def store_upload(connection: Connection, *, name: str, content: IO[bytes], actor: User | None) -> None:
    """Keep an uploaded file with its connection; the next sync takes it in.

    Raises InvalidRequestError for a connection of another kind, ConnectionDisabledError, and ItemError for a
    bad name or a file over the limit.
    """
    require_enabled(connection)
    if connection.kind != "upload":
        raise InvalidRequestError("Files can be uploaded only to a connection of kind upload.")
    target = save_upload(connection, name=name, content=content)
    audit.record(FILE_UPLOADED, actor=actor, subject=connection.slug, file=target.name, connection_id=connection.pk)


def delete_connection(connection: Connection, *, actor: User | None) -> tuple[int, int]:
    """Delete a connection with all that it owns, in one transaction; return how many documents and chunks went.

    What a sync is storing just then goes too, and the sync ends. Files that the connection keeps go once that is done.
    Raises NotFoundError for one that is gone already.
    """
    with changing():
        # In the order of every deletion: the connection first, which a sync that is storing holds.
        Connection.objects.select_for_update().get(pk=connection.pk)
        documents, chunks = stored_counts(connection)
        slug, kind = connection.slug, connection.kind
        connection.delete()
        audit.record("connection.deleted", actor=actor, subject=slug, kind=kind, documents=documents, chunks=chunks)
    return documents, chunks


def stored_counts(connection: Connection) -> tuple[int, int]:
    """Return how many documents and chunks of a connection are stored."""
    counted = TermFrequency.objects.filter(connection_id=connection.pk, lexeme="")
    chunks = counted.aggregate(total=Sum("chunks", default=0))["total"]
    return Document.objects.filter(connection=connection).count(), chunks
