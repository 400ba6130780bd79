"""Indexing documents that programs push: small ones at once, the others with the connection's next sync."""

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import PurePosixPath
from threading import BoundedSemaphore
from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from corecube.connectors import setup_of
from corecube.connectors.push import PushConnector, Pushed, item_of, row_of, store_pushed
from corecube.connectors.types import ItemError
from corecube.errors import InvalidRequestError
from corecube.models import Connection, PushedItem, User
from retrieval.errors import IngestError
from retrieval.index.salience import fill_salience
from retrieval.index.writer import delete_documents
from retrieval.ingest.completion import update_derived
from retrieval.ingest.encode import encode_and_store
from retrieval.ingest.parse.formats import DELIMITED, FORMATS, HTML, JSON, MARKDOWN, TEXT, Format
from retrieval.ingest.parsing import prepare_limited
from retrieval.ingest.prepared_document import PreparedDocument, fingerprint, version_mark
from retrieval.ingest.run import Job, Source, job_of
from retrieval.ingest.sandbox.process import ParserStartError
from retrieval.ingest.services import queue_sync
from retrieval.ingest.sync import require_enabled
from retrieval.models import Document, Sync, SyncProblem, TermFrequency
from retrieval.models.document import document_id

_MAX_BYTES_AT_ONCE: Final = 64 * 1024
_FORMATS_AT_ONCE: Final = frozenset({MARKDOWN, HTML, TEXT, JSON, DELIMITED})
#: How long a request waits for its document to be prepared; after that the next sync does it.
_SECONDS_AT_ONCE: Final = 10.0
#: Documents that one process indexes at the same time; further ones wait for a sync.
_SLOTS: Final = BoundedSemaphore(4)
_MAX_ADDITIONS: Final = 500  #: Additions to the term counts after which derived data is updated.
_CODE_SUFFIXES: Final = {
    "text/x-python": ".py",
    "text/javascript": ".js",
    "application/javascript": ".js",
    "application/yaml": ".yaml",
}


class PushState(StrEnum):
    """The result for a pushed document."""

    INDEXED = "indexed"
    QUEUED = "queued"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class PushOutcome:
    """A pushed document's id and its state."""

    document_id: UUID
    state: PushState


def name_for(external_id: str, media_type: str, *, is_text: bool) -> str:
    """Return a name with a suffix that selects the parser; raise InvalidRequestError for an unknown media type."""
    name = PurePosixPath(external_id.replace("\\", "/")).name or "document"
    found = _format_of(media_type)
    if found is None:
        is_known = any(PurePosixPath(name.lower()).suffix in known.suffixes for known in FORMATS)
        return name if is_known or not is_text else f"{name}.txt"
    if PurePosixPath(name.lower()).suffix in found.suffixes:
        return name
    shortest = min(found.suffixes, key=lambda suffix: (len(suffix), suffix))
    return name + _CODE_SUFFIXES.get(_essence(media_type), shortest)


def push_document(connection: Connection, pushed: Pushed, *, actor: User | None, at_once: bool = True) -> PushOutcome:
    """Store a pushed document in place of an earlier one with its id, and index it.

    A small one of a simple format is searchable when this returns, unless the connection is being synced or the
    document takes more than 10 seconds to prepare. The others wait for the queued sync, and so does every one without
    `at_once`. The same document again changes nothing.
    Raises ConnectionDisabledError, InvalidRequestError for a connection of another kind, and ItemError, with nothing
    stored, for a document that is too large, excluded by patterns, or parsed at once and not readable.
    """
    _require_pushable(connection)
    identity = document_id(connection.pk, pushed.external_id)
    connector = PushConnector.from_setup(setup_of(connection))
    connector.require_wanted(pushed)
    # Stored, and pushed before in the same version.
    same = PushedItem.objects.filter(connection=connection, external_id=pushed.external_id, version=pushed.version)
    if same.exists() and Document.objects.filter(pk=identity).exists():
        return PushOutcome(identity, PushState.UNCHANGED)
    suffix = PurePosixPath(pushed.name.lower()).suffix
    is_simple = any(suffix in known.suffixes for known in _FORMATS_AT_ONCE)
    is_small = is_simple and len(pushed.content) <= _MAX_BYTES_AT_ONCE
    if not at_once or not is_small or not _SLOTS.acquire(blocking=False):
        return PushOutcome(identity, _store_and_queue(connection, pushed, actor))
    try:
        return PushOutcome(identity, _index(connection, connector, pushed, actor))
    except (IngestError, ParserStartError) as error:
        if isinstance(error, IngestError) and error.reason != "too_slow":
            raise ItemError(error.reason, str(error)) from error
        # A sync may take longer, and lists the document as a problem when that fails too.
        return PushOutcome(identity, _store_and_queue(connection, pushed, actor))
    finally:
        _SLOTS.release()


def delete_pushed(connection: Connection, external_id: str, *, actor: User | None) -> bool:
    """Delete a pushed document with its chunks and problems in one transaction; return whether there was one."""
    _require_pushable(connection)
    identity = document_id(connection.pk, external_id)
    with transaction.atomic():
        # Waits for a process that is indexing the document, which holds the row.
        rows = PushedItem.objects.select_for_update().filter(connection=connection, external_id=external_id)
        deleted, _ = PushedItem.objects.filter(pk__in=[row.pk for row in rows.defer("content")]).delete()
        known = Document.objects.filter(pk=identity).exists()
        delete_documents([identity])
        SyncProblem.objects.filter(connection=connection, external_id=external_id).delete()
    if Sync.objects.filter(connection=connection, status__in=Sync.OPEN).exists():
        # A sync may have read the document before; the next one deletes it again.
        _queue(connection, actor)
    return bool(deleted) or known


def _require_pushable(connection: Connection) -> None:
    require_enabled(connection)
    if connection.kind != "push":
        raise InvalidRequestError("Documents can be pushed only to a connection of kind push.")


def _index(connection: Connection, connector: PushConnector, pushed: Pushed, actor: User | None) -> PushState:
    """Parse, store and index a small document; queue it when a sync of the connection is running or queued."""
    source = Source(connector, partial(prepare_limited, seconds=_SECONDS_AT_ONCE))
    job = job_of(Sync(connection=connection, started_at=timezone.now()), source)
    prepared = _prepared(job, pushed)
    row = store_pushed(connection, pushed)
    if Sync.objects.filter(connection=connection, status__in=Sync.OPEN).exists():
        _queue(connection, actor)
        return PushState.QUEUED
    with transaction.atomic():
        current = PushedItem.objects.select_for_update().filter(pk=row.pk).only("version").first()
        # After a later push of the same id, or a deletion, this version is not stored.
        if current is not None and current.version == row.version:
            encode_and_store([prepared], job.target)
            fill_salience(connection.pk)
            SyncProblem.objects.filter(connection=connection, external_id=pushed.external_id).delete()
    if TermFrequency.objects.filter(connection_id=connection.pk, lexeme="").count() >= _MAX_ADDITIONS:
        update_derived(connection)
    return PushState.INDEXED


def _prepared(job: Job, pushed: Pushed) -> PreparedDocument:
    item = item_of(row_of(job.target.connection, pushed))
    recipe = job.recipe(item)
    return PreparedDocument(
        item,
        fingerprint=fingerprint(pushed.content, recipe=recipe),
        byte_size=len(pushed.content),
        text=job.prepare(item, pushed.content),
        version=version_mark(item.version, recipe=recipe),
    )


def _store_and_queue(connection: Connection, pushed: Pushed, actor: User | None) -> PushState:
    store_pushed(connection, pushed)
    _queue(connection, actor)
    return PushState.QUEUED


def _queue(connection: Connection, actor: User | None) -> None:
    """Queue a sync unless one is queued already, which will find the document."""
    if not Sync.objects.filter(connection=connection, status=Sync.Status.QUEUED).exists():
        queue_sync(connection, actor=actor)


def _essence(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def _format_of(media_type: str) -> Format | None:
    """Return the format of a media type, None for no media type; raise InvalidRequestError for an unknown one."""
    essence = _essence(media_type)
    if not essence or essence == "application/octet-stream":
        return None
    for known in FORMATS:
        if essence in known.media_types:
            return known
    raise InvalidRequestError(f"Documents of the type {essence[:80]!r} cannot be read.")
