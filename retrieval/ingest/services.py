"""Starting syncs and taking uploads: writes that also enqueue work or leave an audit event."""

from functools import partial
from typing import IO

from django.db import transaction

from corecube import audit
from corecube.connectors.upload import save_upload
from corecube.errors import InvalidRequestError
from corecube.models import Connection, User
from retrieval.index.writer import delete_documents, fold_term_counts
from retrieval.ingest.sync import require_enabled
from retrieval.models import Document, Sync


def queue_sync(connection: Connection, *, actor: User | None, allow_deletions: bool = False) -> Sync:
    """Queue a sync for a worker and return it. One of the same kind that is queued already is returned as it is.

    Raises ConnectionDisabledError.
    """
    from retrieval.tasks import run_sync  # noqa: PLC0415 -- tasks import the services' neighbours

    require_enabled(connection)
    with transaction.atomic():
        sync, created = Sync.objects.get_or_create(
            connection=connection, status=Sync.Status.QUEUED, allow_deletions=allow_deletions
        )
        if created:
            audit.record(
                "connection.sync_queued", actor=actor, subject=connection.slug, allow_deletions=allow_deletions
            )
        # Also for one that waits already: its message may be lost, and a second one finds nothing left to do.
        transaction.on_commit(partial(run_sync.delay, str(sync.pk)))
    return sync


def store_upload(connection: Connection, *, name: str, content: IO[bytes], actor: User | None) -> None:
    """Keep an uploaded file with its connection; the next sync takes it in.

    Raises InvalidRequestError for a connection of another kind, ConnectionDisabledError, and ItemError for a
    bad name or a file over the limit.
    """
    require_enabled(connection)
    if connection.kind != "upload":
        raise InvalidRequestError("Files can be uploaded only to a connection of kind upload.")
    target = save_upload(connection, name=name, content=content)
    audit.record("connection.file_uploaded", actor=actor, subject=connection.slug, file=target.name)


def delete_all_documents(connection: Connection) -> None:
    """Delete every document of a connection, with all that they own."""
    delete_documents(list(Document.objects.filter(connection=connection).values_list("pk", flat=True)))
    fold_term_counts(connection.pk)
