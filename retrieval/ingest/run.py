"""The work of one sync: going through the source, batch by batch, and what the store is to make of it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.db import transaction

from corecube.connectors import ItemError, ItemProblem, SourceItem
from corecube.connectors.types import Connector
from retrieval.errors import IngestError
from retrieval.index.writer import delete_documents, fold_term_counts, mark_repeated, refresh_statistics
from retrieval.ingest.encode import BATCH_CHUNKS, Target, encode_and_store
from retrieval.ingest.parse import parse
from retrieval.ingest.prepare import PreparedDocument, fingerprint, prepare
from retrieval.ingest.types import ChunkLimits, ParsedDocument, RawDocument
from retrieval.models import Document, Sync, SyncProblem, TermFrequency
from retrieval.models.document import document_id

logger = logging.getLogger(__name__)

#: Chunks after which the planner's statistics are worth refreshing.
_MANY_CHUNKS: Final = 1000
#: Documents that one statement marks as synced.
_MARKED_AT_ONCE: Final = 10_000

Progress = Callable[[Sync], None]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a sync reads from, and how it reads."""

    connector: Connector
    parse: Callable[[RawDocument], ParsedDocument] = parse


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
    #: Documents below what could not be listed: not seen, but not gone either.
    _out_of_sight: set[UUID] = field(default_factory=set)
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
        if identity in self._seen:
            message = "Another item has the same id; the first one counts."
            self._fail(ItemProblem(item.external_id, "duplicate", message))
            return
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
        """Return the documents that the source no longer holds; what failed to be read or listed is not missing."""
        return sorted(self.known.keys() - self._seen - self._out_of_sight)

    def delete(self, ids: list[UUID]) -> None:
        """Delete documents."""
        if ids:
            delete_documents(ids)
            self.sync.deleted = len(ids)

    def settle(self) -> None:
        """Mark the unchanged documents as synced, and put counts and repeated texts in order, a killed sync's too."""
        for start in range(0, len(self._unchanged), _MARKED_AT_ONCE):
            marked = self._unchanged[start : start + _MARKED_AT_ONCE]
            Document.objects.filter(pk__in=marked).update(synced_at=self.target.synced_at)
        # Every addition has a row for the empty lexeme, so more than one of them means that nobody summed them.
        if TermFrequency.objects.filter(connection_id=self.target.connection.pk, lexeme="").count() > 1:
            fold_term_counts(self.target.connection.pk)
        if self.sync.chunks >= _MANY_CHUNKS:
            refresh_statistics()
        mark_repeated(self.target.connection.pk)

    def _recipe(self, item: SourceItem) -> str:
        """Return everything beside the bytes that decides what is stored for an item."""
        target = self.target
        return f"{target.index} {target.text_search_config} {self.limits} {target.connection.source_type} {item.name}"

    def _fail(self, problem: ItemProblem) -> None:
        self._seen.add(document_id(self.target.connection.pk, problem.external_id))
        self._problems[problem.external_id] = problem
        self.sync.failed += 1
        if problem.covers_subtree:
            self._out_of_sight.update(self._below(problem.external_id))
        logger.info("ingest.problem connection=%s reason=%s", self.target.connection.slug, problem.reason)

    def _below(self, folder: str) -> set[UUID]:
        """Return the known documents below a folder of the source; all of them for its root."""
        if folder in {"", "."}:
            return set(self.known)
        documents = Document.objects.filter(connection=self.target.connection, external_id__startswith=f"{folder}/")
        return set(documents.values_list("pk", flat=True))
