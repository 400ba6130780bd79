"""Taking in documents that programs push: small ones at once, the others with the connection's next sync."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from threading import BoundedSemaphore
from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from corecube.connectors import setup_of
from corecube.connectors.push import PushConnector, Pushed, item_of, keep_pushed
from corecube.connectors.types import ItemError
from corecube.errors import InvalidRequestError
from corecube.models import Connection, PushedItem, User
from retrieval.errors import IngestError
from retrieval.index.salience import fill_salience
from retrieval.index.writer import delete_documents
from retrieval.ingest.encode import encode_and_store
from retrieval.ingest.parse.formats import DELIMITED, FORMATS, HTML, JSON, MARKDOWN, TEXT, Format
from retrieval.ingest.parsing import prepare_limited
from retrieval.ingest.preparation import Preparation, PreparedText
from retrieval.ingest.prepare import PreparedDocument, fingerprint, version_mark
from retrieval.ingest.run import Job, Source, job_of
from retrieval.ingest.sandbox.process import ParserStartError
from retrieval.ingest.services import queue_sync
from retrieval.ingest.settle import tidy
from retrieval.ingest.sync import require_enabled
from retrieval.models import Document, Sync, SyncProblem, TermFrequency
from retrieval.models.document import document_id
from retrieval.text.document import RawDocument

#: What is parsed in the request itself: small, and of a format that costs little.
_MAX_BYTES_AT_ONCE: Final = 64 * 1024
_AT_ONCE: Final = frozenset({MARKDOWN, HTML, TEXT, JSON, DELIMITED})
#: How long a request waits for its document to be prepared; then the next sync does it.
_SECONDS_AT_ONCE: Final = 10.0
#: Documents that one process takes in at once; more pushes than that wait for a sync.
_SLOTS: Final = BoundedSemaphore(4)
#: Additions to the term counts after which they are summed and repeated texts are looked for.
_ADDITIONS: Final = 500
_CODE_SUFFIXES: Final = {
    "text/x-python": ".py",
    "text/javascript": ".js",
    "application/javascript": ".js",
    "application/yaml": ".yaml",
}


class PushState(StrEnum):
    """What became of a pushed document."""

    INDEXED = "indexed"
    QUEUED = "queued"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class PushOutcome:
    """A pushed document's id and what became of it."""

    document_id: UUID
    state: PushState


def name_for(external_id: str, media_type: str, *, is_text: bool) -> str:
    """Return the name that chooses the parser: the id's last part, with a suffix of the media type where it has none.

    Raises InvalidRequestError for a media type that no parser reads.
    """
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
    """Keep a pushed document in place of an earlier one with its id, and take it in.

    A small one of a simple format is searchable when this returns, unless the connection is being synced or it takes
    more than 10 seconds to prepare. The others wait for the sync that is queued, and so does every one that need not be
    taken in `at_once`. The same document again changes nothing.
    Raises ConnectionDisabledError, InvalidRequestError for a connection of another kind, and ItemError, with nothing
    kept, for a document that is too large, left out by patterns, or read at once and not readable.
    """
    _require_pushable(connection)
    identity = document_id(connection.pk, pushed.external_id)
    connector = PushConnector.from_setup(setup_of(connection))
    connector.require_wanted(pushed)
    if _is_known(connection, pushed):
        return PushOutcome(identity, PushState.UNCHANGED)
    if not at_once or not _is_small(pushed) or not _SLOTS.acquire(blocking=False):
        return PushOutcome(identity, _keep_and_queue(connection, pushed, actor))
    try:
        return PushOutcome(identity, _take_in(connection, connector, pushed, actor))
    except (IngestError, ParserStartError) as error:
        if isinstance(error, IngestError) and error.reason != "too_slow":
            raise ItemError(error.reason, str(error)) from error
        # Whoever asked has waited long enough; a sync may take longer, and lists it as a problem if that is not enough.
        return PushOutcome(identity, _keep_and_queue(connection, pushed, actor))
    finally:
        _SLOTS.release()


def delete_pushed(connection: Connection, external_id: str, *, actor: User | None) -> bool:
    """Delete a pushed document and all that was made of it, in one transaction; return whether there was one."""
    _require_pushable(connection)
    identity = document_id(connection.pk, external_id)
    with transaction.atomic():
        # Whoever takes it in at this moment holds the row, and is waited for.
        rows = PushedItem.objects.select_for_update().filter(connection=connection, external_id=external_id)
        deleted, _ = PushedItem.objects.filter(pk__in=[row.pk for row in rows.defer("content")]).delete()
        known = Document.objects.filter(pk=identity).exists()
        delete_documents([identity])
        SyncProblem.objects.filter(connection=connection, external_id=external_id).delete()
    if Sync.objects.filter(connection=connection, status__in=Sync.OPEN).exists():
        # A sync may have read it before it was deleted; the next one deletes what that stores.
        _queue(connection, actor)
    return bool(deleted) or known


def _require_pushable(connection: Connection) -> None:
    require_enabled(connection)
    if connection.kind != "push":
        raise InvalidRequestError("Documents can be pushed only to a connection of kind push.")


def _is_known(connection: Connection, pushed: Pushed) -> bool:
    """Return whether the same document was pushed before and is stored."""
    same = PushedItem.objects.filter(connection=connection, external_id=pushed.external_id, version=pushed.version)
    return same.exists() and Document.objects.filter(pk=document_id(connection.pk, pushed.external_id)).exists()


def _take_in(connection: Connection, connector: PushConnector, pushed: Pushed, actor: User | None) -> PushState:
    """Read, keep and store a small document; queue it when a sync of the connection is at work or waits."""
    job = job_of(Sync(connection=connection, started_at=timezone.now()), Source(connector, _prepare_at_once))
    prepared = _prepared(job, pushed)
    row = keep_pushed(connection, pushed)
    if Sync.objects.filter(connection=connection, status__in=Sync.OPEN).exists():
        _queue(connection, actor)
        return PushState.QUEUED
    with transaction.atomic():
        current = PushedItem.objects.select_for_update().filter(pk=row.pk).only("version").first()
        # Another push of the same id came later, or it was deleted: what is stored is theirs.
        if current is not None and current.version == row.version:
            encode_and_store([prepared], job.target)
            fill_salience(connection.pk)
            SyncProblem.objects.filter(connection=connection, external_id=pushed.external_id).delete()
    if TermFrequency.objects.filter(connection_id=connection.pk, lexeme="").count() >= _ADDITIONS:
        tidy(connection)
    return PushState.INDEXED


def _prepared(job: Job, pushed: Pushed) -> PreparedDocument:
    """Return the document ready to be embedded, as a sync would make it; raise IngestError."""
    item = item_of(
        PushedItem(
            external_id=pushed.external_id,
            name=pushed.name,
            media_type=pushed.media_type,
            uri=pushed.uri,
            facts=dict(pushed.facts),
            modified_at=pushed.modified_at,
            version=pushed.version,
        )
    )
    recipe = job.recipe(item)
    return PreparedDocument(
        item,
        fingerprint=fingerprint(pushed.content, recipe=recipe),
        byte_size=len(pushed.content),
        text=job.prepared(item, pushed.content),
        version=version_mark(item.version, recipe=recipe),
    )


def _prepare_at_once(raw: RawDocument, how: Preparation) -> PreparedText:
    return prepare_limited(raw, how, seconds=_SECONDS_AT_ONCE)


def _keep_and_queue(connection: Connection, pushed: Pushed, actor: User | None) -> PushState:
    keep_pushed(connection, pushed)
    _queue(connection, actor)
    return PushState.QUEUED


def _queue(connection: Connection, actor: User | None) -> None:
    """Queue a sync unless one waits, which will find the document: many pushes make one message."""
    if not Sync.objects.filter(connection=connection, status=Sync.Status.QUEUED).exists():
        queue_sync(connection, actor=actor)


def _is_small(pushed: Pushed) -> bool:
    suffix = PurePosixPath(pushed.name.lower()).suffix
    is_simple = any(suffix in known.suffixes for known in _AT_ONCE)
    return is_simple and len(pushed.content) <= _MAX_BYTES_AT_ONCE


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
