"""Starting and cancelling syncs, storing uploads, deleting connections: changes with an audit event or queued work."""

from collections.abc import Collection
from typing import IO, Final

from django.db import transaction
from django.db.models import F, Sum

from corecube import audit
from corecube.connectors.upload import save_upload
from corecube.database import atomic_change
from corecube.errors import InvalidRequestError
from corecube.models import Connection, User
from retrieval.ingest.completion import finish_cancelled, request_cancel
from retrieval.ingest.listing import FILE_UPLOADED
from retrieval.ingest.problems import retryable
from retrieval.ingest.sync import require_enabled
from retrieval.ingest.tasks import wake_workers
from retrieval.models import Document, Sync, SyncItem, TermFrequency

_NOTHING_TO_RETRY: Final = (
    "No item of this sync can be retried. Correct the failed items in the source, then sync again."
)


def queue_sync(
    connection: Connection, *, actor: User | None, allow_deletions: bool = False, dry_run: bool = False
) -> Sync:
    """Queue a sync for a worker and return it, or the queued one of the same kind.

    A dry run stores only how much it would add, change and delete. Raises ConnectionDisabledError.
    """
    require_enabled(connection)
    kind = Sync.Kind.DRY_RUN if dry_run else Sync.Kind.FULL
    with atomic_change():
        sync, created = Sync.objects.get_or_create(
            connection=connection, status=Sync.Status.QUEUED, kind=kind, allow_deletions=allow_deletions
        )
        if created:
            facts = {"allow_deletions": allow_deletions, "kind": kind.value}
            audit.record("connection.sync_queued", actor=actor, subject=connection.slug, **facts)
        # Also for one that is queued already: its message may be lost, and a second message does no harm.
        transaction.on_commit(wake_workers)
    return sync


def retry_failed(sync: Sync, *, actor: User | None, external_ids: Collection[str] | None = None) -> Sync:
    """Queue a sync of only the items that failed in an earlier one, and return it.

    `external_ids` limits these items; None is all. Raises ConnectionDisabledError, and InvalidRequestError when another
    try can help none of them: items that could not be listed, or that need a change in the source, need a full sync.
    """
    require_enabled(sync.connection)
    with atomic_change():
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
        transaction.on_commit(wake_workers)
    retry.refresh_from_db()
    return retry


def cancel_sync(sync: Sync, *, actor: User | None) -> Sync:
    """Cancel a queued or running sync, and return it; documents that are stored already stay.

    It is CANCELLING until its workers have stopped, which takes seconds, and then CANCELLED. The workers store nothing
    more from now on. A sync that has ended is not changed.
    """
    if request_cancel(sync):
        audit.record("connection.sync_cancelled", actor=actor, subject=sync.connection.slug)
    finish_cancelled(sync)
    sync.refresh_from_db()
    return sync


def store_upload(
    connection: Connection, *, name: str, content: IO[bytes], actor: User | None, folder: str = ""
) -> None:
    """Store an upload, in a folder of the connection's uploads, for the next sync.

    Raises InvalidRequestError, ConnectionDisabledError, ItemError, UnavailableError.
    """
    require_enabled(connection)
    if connection.kind != "upload":
        raise InvalidRequestError("Files can be uploaded only to a connection of kind upload.")
    file = save_upload(connection, name=name, content=content, folder=folder)
    audit.record(FILE_UPLOADED, actor=actor, subject=connection.slug, file=file, connection_id=connection.pk)


def delete_connection(connection: Connection, *, actor: User | None) -> tuple[int, int]:
    """Delete a connection with all its data in one transaction; return the numbers of deleted documents and chunks.

    A document that a sync is storing is deleted too, and the sync ends. The connection's files are deleted after the
    transaction. Raises NotFoundError for a connection that is deleted already.
    """
    with atomic_change():
        # Every deletion locks the connection first, which a sync holds while it stores a document.
        Connection.objects.select_for_update().get(pk=connection.pk)
        documents, chunks = stored_counts(connection)
        slug, kind = connection.slug, connection.kind
        connection.delete()
        audit.record("connection.deleted", actor=actor, subject=slug, kind=kind, documents=documents, chunks=chunks)
    return documents, chunks


def stored_counts(connection: Connection) -> tuple[int, int]:
    """Return the numbers of stored documents and chunks of a connection."""
    counted = TermFrequency.objects.filter(connection_id=connection.pk, lexeme="")
    chunks = counted.aggregate(total=Sum("chunks", default=0))["total"]
    return Document.objects.filter(connection=connection).count(), chunks
