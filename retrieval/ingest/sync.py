"""Syncing a connection: what is new or changed is embedded, what is gone is deleted, the rest is left alone.

Every batch is one transaction and an unchanged document is known by its fingerprint, so a sync that is
killed loses at most the batch in hand, and the next one goes on where it stopped.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection as database
from django.db import transaction
from django.utils import timezone

from corecube.connectors import ItemError, ItemProblem, SourceItem, connector_for
from corecube.connectors.types import Connector
from corecube.errors import CoreCubeError
from corecube.models import Connection
from retrieval import runtime
from retrieval.errors import IngestError, SyncRunningError
from retrieval.index.embedding_index import ensure_index
from retrieval.index.writer import delete_documents, fold_term_counts, refresh_statistics
from retrieval.ingest.encode import BATCH_CHUNKS, Target, encode_and_store
from retrieval.ingest.parse import parse
from retrieval.ingest.prepare import PreparedDocument, fingerprint, prepare
from retrieval.ingest.types import ChunkLimits, ParsedDocument, RawDocument
from retrieval.models import Document, Sync, SyncProblem
from retrieval.models.document import document_id

logger = logging.getLogger(__name__)

#: First key of the advisory locks that keep two syncs of one connection apart.
_LOCK_CLASS: Final = 7_301
#: Chunks after which the planner's statistics are worth refreshing.
_MANY_CHUNKS: Final = 1000

Progress = Callable[[Sync], None]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a sync reads from, and how it reads."""

    connector: Connector
    parse: Callable[[RawDocument], ParsedDocument] = parse


def sync_connection(
    connection: Connection,
    *,
    sync: Sync | None = None,
    progress: Progress = lambda _: None,
    source: Source | None = None,
) -> Sync:
    """Bring the store in line with a connection's source and return the finished sync.

    `progress` is called after every item; `source` stands in for the connection's own connector and parsers.
    The sync ends as DONE (bad items are listed as problems), as STOPPED when it would delete more than the
    guarded share and its `allow_deletions` is off, or as FAILED, and then the error is raised on.
    Raises SyncRunningError when another sync of the connection is at work.
    """
    with _only_sync_of(connection):
        sync = sync or Sync(connection=connection)
        _end_interrupted(connection, sync)
        _start(sync)
        try:
            _run(sync, source or Source(connector_for(connection)), progress)
        except BaseException as error:
            _finish(sync, Sync.Status.FAILED, str(error) if isinstance(error, CoreCubeError) else type(error).__name__)
            raise
    return sync


def _run(sync: Sync, source: Source, progress: Progress) -> None:
    source.connector.check()
    encoder = runtime.encoder()
    target = Target(
        connection=sync.connection,
        encoder=encoder,
        index=ensure_index(encoder),
        text_search_config=settings.CORECUBE_TEXT_SEARCH_CONFIG,
        synced_at=timezone.now(),
    )
    run = SyncRun(sync, source, target, progress)
    run.take_in()
    run.store_waiting()
    run.list_problems()
    deletable = run.missing()
    if _is_guarded(len(deletable), len(run.known)) and not sync.allow_deletions:
        share = f"{len(deletable)} of {len(run.known)} documents are gone from the source"
        _finish(sync, Sync.Status.STOPPED, f"{share}; nothing was deleted. Confirm the deletion to go on.")
        return
    run.delete(deletable)
    _finish(sync, Sync.Status.DONE)
    Connection.objects.filter(pk=sync.connection.pk).update(last_synced_at=target.synced_at)


def _is_guarded(deletions: int, known: int) -> bool:
    """Return whether so many deletions need a person's word."""
    return deletions > 1 and deletions * 100 > known * settings.CORECUBE_DELETE_GUARD_PERCENT


@dataclass(slots=True)
class SyncRun:
    """One sync at work: what the store held before, what was seen, what waits to be encoded."""

    sync: Sync
    source: Source
    target: Target
    progress: Progress
    limits: ChunkLimits = field(default_factory=ChunkLimits)
    #: Fingerprint by document id, of what the store held before.
    known: dict[UUID, str] = field(init=False)
    _waiting: list[PreparedDocument] = field(default_factory=list)
    _seen: set[UUID] = field(default_factory=set)
    _unchanged: list[UUID] = field(default_factory=list)
    _problems: dict[str, ItemProblem] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read what the store holds."""
        documents = Document.objects.filter(connection=self.target.connection)
        self.known = dict(documents.values_list("id", "fingerprint"))

    def take_in(self) -> None:
        """Go through the source; every item ends as unchanged, waiting or a problem."""
        for item in self.source.connector.items():
            self.sync.seen += 1
            if isinstance(item, ItemProblem):
                self._fail(item)
            else:
                self._take(item)
            self.progress(self.sync)

    def _take(self, item: SourceItem) -> None:
        identity = document_id(self.target.connection.pk, item.external_id)
        self._seen.add(identity)
        try:
            content = self.source.connector.read(item)
            mark = fingerprint(content, recipe=self._recipe(item))
            if self.known.get(identity) == mark:
                self._unchanged.append(identity)
                self.sync.unchanged += 1
            else:
                self._add(identity, self._prepare(item, content, mark))
        except (ItemError, IngestError) as error:
            self._fail(ItemProblem(item.external_id, error.reason, str(error)))

    def _prepare(self, item: SourceItem, content: bytes, mark: str) -> PreparedDocument:
        parsed = self.source.parse(RawDocument(item.name, content, item.media_type))
        return prepare(
            item,
            parsed,
            fingerprint=mark,
            byte_size=len(content),
            counter=self.target.encoder,
            limits=self.limits,
        )

    def _add(self, identity: UUID, prepared: PreparedDocument) -> None:
        """Queue a document for the encoder."""
        if identity in self.known:
            self.sync.changed += 1
        else:
            self.sync.added += 1
        self._waiting.append(prepared)
        if sum(len(document.chunks) for document in self._waiting) >= BATCH_CHUNKS:
            self.store_waiting()

    def store_waiting(self) -> None:
        """Encode and store what waits."""
        if not self._waiting:
            return
        self.sync.encode_seconds += encode_and_store(self._waiting, self.target)
        self.sync.chunks += sum(len(document.chunks) for document in self._waiting)
        self._waiting.clear()
        self.sync.save()
        self.progress(self.sync)

    def list_problems(self) -> None:
        """Replace the connection's list of problems by this sync's."""
        connection = self.target.connection
        rows = [
            SyncProblem(connection=connection, external_id=it.external_id, reason=it.reason, message=it.message)
            for it in self._problems.values()
        ]
        with transaction.atomic():
            connection.problems.all().delete()
            SyncProblem.objects.bulk_create(rows)

    def missing(self) -> list[UUID]:
        """Return the documents that the source no longer holds; one that failed to be read is not missing."""
        return sorted(self.known.keys() - self._seen)

    def delete(self, ids: list[UUID]) -> None:
        """Delete documents, mark the unchanged as synced, and put the counts in order."""
        if ids:
            delete_documents(ids)
            self.sync.deleted = len(ids)
        Document.objects.filter(pk__in=self._unchanged).update(synced_at=self.target.synced_at)
        if ids or self.sync.chunks:
            fold_term_counts(self.target.connection.pk)
        if self.sync.chunks >= _MANY_CHUNKS:
            refresh_statistics()

    def _recipe(self, item: SourceItem) -> str:
        """Return everything beside the bytes that decides what is stored for an item."""
        target = self.target
        return f"{target.index} {target.text_search_config} {self.limits} {target.connection.source_type} {item.name}"

    def _fail(self, problem: ItemProblem) -> None:
        self._seen.add(document_id(self.target.connection.pk, problem.external_id))
        self._problems[problem.external_id] = problem
        self.sync.failed += 1
        logger.info("ingest.problem connection=%s reason=%s", self.target.connection.slug, problem.reason)


@contextmanager
def _only_sync_of(connection: Connection) -> Iterator[None]:
    """Hold the connection's advisory lock, which the database gives up by itself when the process dies."""
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_LOCK_CLASS, connection.pk])
        if cursor.fetchone() != (True,):
            raise SyncRunningError
    try:
        yield
    finally:
        with database.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_LOCK_CLASS, connection.pk])


def _end_interrupted(connection: Connection, current: Sync) -> None:
    """Close syncs that were running when their process died; nobody runs them, since the lock is ours."""
    interrupted = connection.syncs.filter(status=Sync.Status.RUNNING).exclude(pk=current.pk)
    interrupted.update(status=Sync.Status.FAILED, finished_at=timezone.now(), message="It was interrupted.")


def _start(sync: Sync) -> None:
    sync.status, sync.started_at = Sync.Status.RUNNING, timezone.now()
    sync.save()


def _finish(sync: Sync, status: Sync.Status, message: str = "") -> None:
    sync.status, sync.finished_at, sync.message = status, timezone.now(), message
    sync.save()
    logger.info("sync.%s connection=%s chunks=%d failed=%d", status, sync.connection.slug, sync.chunks, sync.failed)
