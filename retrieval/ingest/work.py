"""Working on claimed items: read, parse, chunk; then embed many documents at once and store each by itself."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.db import DatabaseError, Error, transaction

from corecube.connectors import SourceItem
from corecube.errors import UnknownConnectionError
from retrieval.errors import EncoderError, ModelMissingError
from retrieval.ingest import claims
from retrieval.ingest.encode import BATCH_CHUNKS, Taker, encode_and_store
from retrieval.ingest.parsing import max_seconds
from retrieval.ingest.prepare import PreparedDocument, fingerprint, version_mark
from retrieval.ingest.problems import reason_of
from retrieval.ingest.progress import Embedding, PaceKeeper
from retrieval.ingest.run import Job, Progress, SyncEndedError, item_from_json, reload
from retrieval.ingest.sandbox.process import InterruptedPreparationError
from retrieval.ingest.steps import Doing, Steps
from retrieval.models import Document, Sync, SyncItem

logger = logging.getLogger(__name__)

#: How often a worker looks whether the sync was cancelled.
_LOOK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A document that is ready to be embedded, and the claim that it was made for."""

    claim: SyncItem
    document: PreparedDocument
    outcome: SyncItem.Outcome


@dataclass(slots=True)
class Work:
    """What one worker does for one sync: enough items to fill the encoder, and then again."""

    job: Job
    worker: UUID
    progress: Progress
    steps: Steps
    _waiting: list[_Waiting] = field(default_factory=list)
    _chunks: int = 0
    #: Claims whose bytes the store has already, with their versions, and since when the first waits to be settled.
    _unchanged: list[tuple[SyncItem, str]] = field(default_factory=list)
    _unchanged_since: float = 0.0
    _looked_at: float = field(default_factory=time.monotonic)
    _pace: PaceKeeper = field(init=False)

    def __post_init__(self) -> None:
        self._pace = PaceKeeper(self.job.sync)

    def batch(self) -> bool:
        """Claim items until the encoder has enough, and take them in; return whether there was anything to claim.

        Raises SyncEndedError, with nothing more stored, soon after the sync was cancelled; UnknownConnectionError.
        """
        worked = False
        while claimed := claims.claim(self.job.sync, self.worker):
            worked = True
            if self._take_all(claimed) or claimed[0].reason == claims.LOST:
                break
        self._store()
        self._pace.store()
        self.steps.rest()
        return worked

    def _take_all(self, claimed: list[SyncItem]) -> bool:
        """Prepare what was claimed; return whether the encoder had enough on the way."""
        rows = Document.objects.filter(pk__in=[item.document_id for item in claimed])
        known = dict(rows.values_list("pk", "fingerprint"))
        had_enough = False
        for item in claimed:
            self._require_wanted()
            mark = self._take(item, known.get(item.document_id))
            if mark is not None:
                self._settle_unchanged_soon(item, mark)
            if self._chunks >= BATCH_CHUNKS:
                self._store()
                had_enough = True
        self._settle_unchanged()
        return had_enough

    def _take(self, claim: SyncItem, known: str | None) -> str | None:
        """Prepare one item, or put it back; return the version to store when the store has its bytes already."""
        item = item_from_json(claim.external_id, claim.item)
        recipe = self.job.recipe(item)
        self.steps.begin(Doing.READING, [claim.pk])
        with self._pace.reading():
            return self._read(claim, item, recipe, known)

    def _read(self, claim: SyncItem, item: SourceItem, recipe: str, known: str | None) -> str | None:
        try:
            content = self.job.source.connector.read(item)
            mark = fingerprint(content, recipe=recipe)
            version = version_mark(item.version, recipe=recipe)
            if mark == known:
                return version
            self.steps.begin(Doing.PREPARING, [claim.pk], seconds=max_seconds(len(content)))
            text = self.job.prepared(item, content)
        except (Error, UnknownConnectionError, SyncEndedError):
            raise
        except InterruptedPreparationError as error:
            raise SyncEndedError from error
        except Exception as error:  # noqa: BLE001 -- whatever is wrong with one item stops none of the others
            self.put_back(claim, error)
            return None
        outcome = SyncItem.Outcome.CHANGED if known else SyncItem.Outcome.ADDED
        document = PreparedDocument(item, mark, len(content), text, version)
        claims.enter_embedding(claim.pk, self.worker, chunks=len(text.chunks))
        self._waiting.append(_Waiting(claim, document, outcome))
        self._chunks += len(text.chunks)
        return None

    def _settle_unchanged_soon(self, claim: SyncItem, version: str) -> None:
        """Settle an item together with others, but no later than a source that is slow to read takes for one more."""
        if not self._unchanged:
            self._unchanged_since = time.monotonic()
        self._unchanged.append((claim, version))
        if time.monotonic() - self._unchanged_since >= _LOOK_SECONDS:
            self._settle_unchanged()

    def _settle_unchanged(self) -> None:
        """Mark documents whose bytes are the same as synced, and keep their new versions."""
        unchanged, self._unchanged = self._unchanged, []
        if not unchanged:
            return
        with transaction.atomic():
            ids = [item.document_id for item, _ in unchanged]
            rows = Document.objects.filter(pk__in=ids).order_by("pk").select_for_update(no_key=True)
            known = list(rows.values_list("pk", flat=True))
            Document.objects.filter(pk__in=known).update(synced_at=self.job.target.synced_at)
            versioned = [Document(pk=item.document_id, version=mark) for item, mark in unchanged if mark]
            Document.objects.bulk_update(versioned, ["version"])
            claims.finish_unchanged([item.pk for item, _ in unchanged], self.worker, sync=self.job.sync)
        self._report()

    def _store(self) -> None:
        """Embed and store what waits."""
        if not self._waiting:
            return
        waiting, self._waiting, self._chunks = self._waiting, [], 0
        chunks = {it.claim.pk: len(it.document.text.chunks) for it in waiting}
        self.steps.begin(Doing.EMBEDDING, list(chunks))
        self._pace.store()
        embedding = Embedding(self._pace, self.worker, chunks)
        taker = _Taker(self, {it.document.item.external_id: it for it in waiting}, embedding)
        try:
            seconds = encode_and_store([it.document for it in waiting], self.job.target, taker)
        except ModelMissingError:
            raise
        except EncoderError as error:
            for it in waiting:
                self.put_back(it.claim, error)
            return
        claims.count_encoding(self.job.sync, seconds)
        self._report()

    def put_back(self, claim: SyncItem, error: Exception) -> None:
        """Mark a claimed item as failed, or as waiting for another try."""
        reason, message = reason_of(error)
        claims.put_back(claim, self.worker, sync=self.job.sync, reason=reason, message=message)
        logger.info("ingest.problem connection=%s reason=%s", self.job.target.connection.slug, reason)

    def _require_wanted(self) -> None:
        """Raise SyncEndedError for a sync that runs no more, looked up once a second."""
        if time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        if not Sync.objects.filter(pk=self.job.sync.pk, status=Sync.Status.RUNNING).exists():
            raise SyncEndedError

    def _report(self) -> None:
        reload(self.job.sync)
        self.progress(self.job.sync)


@dataclass(frozen=True, slots=True)
class _Taker(Taker):
    """Has the documents of one batch stored."""

    work: Work
    waiting: Mapping[str, _Waiting]
    embedding: Embedding

    def calling(self) -> None:
        self.work.steps.progress()

    def embedded(self, share: float) -> None:
        self.embedding.note(share)

    def storing(self, document: PreparedDocument) -> None:
        self.work.steps.begin(Doing.STORING, [self._of(document).claim.pk])

    def finish(self, document: PreparedDocument) -> None:
        it, work = self._of(document), self.work
        chunks = len(document.text.chunks)
        claims.finish(it.claim.pk, work.worker, sync=work.job.sync, outcome=it.outcome, chunks=chunks)

    def refused(self, document: PreparedDocument, error: DatabaseError) -> None:
        self.work.put_back(self._of(document).claim, error)

    def _of(self, document: PreparedDocument) -> _Waiting:
        return self.waiting[document.item.external_id]
