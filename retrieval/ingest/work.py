"""Processing claimed items: read, parse and chunk; then embed many documents together and store each separately.

The sync's progress is stored meanwhile: the share of embedded chunks, and the pace.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.db import DatabaseError, Error, transaction
from django.db.models import F

from corecube.connectors.types import SourceItem
from corecube.errors import UnknownConnectionError
from retrieval.errors import EncoderError, ModelMissingError
from retrieval.index.locks import Lock, lock_documents
from retrieval.ingest import claims
from retrieval.ingest.encode import BATCH_CHUNKS, StoreListener, encode_and_store
from retrieval.ingest.pace import Effort, with_work
from retrieval.ingest.parsing import max_seconds
from retrieval.ingest.prepared_document import PreparedDocument, fingerprint, version_mark
from retrieval.ingest.problems import reason_of
from retrieval.ingest.run import Doing, Job, Progress, Steps, SyncEndedError, item_from_json, reload
from retrieval.ingest.sandbox.process import InterruptedPreparationError
from retrieval.models import Document, Sync, SyncItem

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 1.0
_CHECK_SECONDS: Final = 1.0


@dataclass(slots=True)
class _PaceRecorder:
    sync: Sync
    _done: Effort = field(default_factory=Effort)
    _stored_at: float = 0.0

    def __post_init__(self) -> None:
        self.store()

    @contextmanager
    def reading(self) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.add(Effort(items=1, reading_seconds=time.monotonic() - started))

    def add(self, done: Effort) -> None:
        self._done += done
        if time.monotonic() - self._stored_at >= _EVERY_SECONDS:
            self.store()

    def store(self) -> None:
        done, self._done, self._stored_at = self._done, Effort(), time.monotonic()
        with transaction.atomic():
            sync = Sync.objects.select_for_update(no_key=True).filter(pk=self.sync.pk).only("pace").first()
            if sync is not None:
                Sync.objects.filter(pk=sync.pk).update(pace=with_work(sync.pace, done, at=time.time()))


@dataclass(frozen=True, slots=True)
class _Prepared:
    claim: SyncItem
    document: PreparedDocument
    outcome: SyncItem.Outcome


@dataclass(slots=True)
class Work:
    """Processes items of one sync for one worker, a batch for the encoder at a time."""

    job: Job
    worker: UUID
    progress: Progress
    steps: Steps
    _prepared: list[_Prepared] = field(default_factory=list)
    _chunks: int = 0
    #: Claims whose bytes are stored already, with their versions, and since when the first waits to be finished.
    _unchanged: list[tuple[SyncItem, str]] = field(default_factory=list)
    _unchanged_since: float = 0.0
    _checked_at: float = field(default_factory=time.monotonic)
    _pace: _PaceRecorder = field(init=False)

    def __post_init__(self) -> None:
        self._pace = _PaceRecorder(self.job.sync)

    def process_batch(self) -> bool:
        """Claim items until a batch for the encoder is full, and process them; return whether there were any.

        Raises SyncEndedError, with nothing more stored, soon after the sync was cancelled; UnknownConnectionError.
        """
        worked = False
        while claimed := claims.claim(self.job.sync, self.worker):
            worked = True
            if self._process(claimed) or claimed[0].reason == claims.LOST:
                break
        self._store()
        self._pace.store()
        self.steps.rest()
        return worked

    def _process(self, claimed: list[SyncItem]) -> bool:
        """Prepare claimed items; return whether a batch for the encoder was full."""
        rows = Document.objects.filter(pk__in=[item.document_id for item in claimed])
        known = dict(rows.values_list("pk", "fingerprint"))
        was_full = False
        for claim in claimed:
            self._require_running()
            item = item_from_json(claim.external_id, claim.item)
            recipe = self.job.recipe(item)
            self.steps.begin(Doing.READING, [claim.pk])
            with self._pace.reading():
                version = self._prepare(claim, item, recipe, known.get(claim.document_id))
            if version is not None:
                # Finished together with others, but without a long wait when the source is slow.
                if not self._unchanged:
                    self._unchanged_since = time.monotonic()
                self._unchanged.append((claim, version))
                if time.monotonic() - self._unchanged_since >= _CHECK_SECONDS:
                    self._finish_unchanged()
            if self._chunks >= BATCH_CHUNKS:
                self._store()
                was_full = True
        self._finish_unchanged()
        return was_full

    def _prepare(self, claim: SyncItem, item: SourceItem, recipe: str, known: str | None) -> str | None:
        """Prepare one item, or mark it as failed; return its version when its bytes are stored already."""
        try:
            content = self.job.source.connector.read(item)
            mark = fingerprint(content, recipe=recipe)
            version = version_mark(item.version, recipe=recipe)
            if mark == known:
                return version
            self.steps.begin(Doing.PREPARING, [claim.pk], seconds=max_seconds(len(content)))
            text = self.job.prepare(item, content)
        except (Error, UnknownConnectionError, SyncEndedError):
            raise
        except InterruptedPreparationError as error:
            raise SyncEndedError from error
        except Exception as error:  # noqa: BLE001 -- an error in one item does not stop the others
            self.fail_or_retry(claim, error)
            return None
        outcome = SyncItem.Outcome.CHANGED if known else SyncItem.Outcome.ADDED
        document = PreparedDocument(item, mark, len(content), text, version)
        claims.claimed_by(self.worker, [claim.pk]).update(stage=SyncItem.Stage.EMBEDDING, chunks=len(text.chunks))
        self._prepared.append(_Prepared(claim, document, outcome))
        self._chunks += len(text.chunks)
        return None

    def _finish_unchanged(self) -> None:
        unchanged, self._unchanged = self._unchanged, []
        if not unchanged:
            return
        ids = [item.document_id for item, _ in unchanged]
        with transaction.atomic():
            lock_documents(ids, Lock.NO_KEY_UPDATE)
            Document.objects.filter(pk__in=ids).update(synced_at=self.job.target.synced_at)
            versioned = [Document(pk=item.document_id, version=version) for item, version in unchanged if version]
            Document.objects.bulk_update(versioned, ["version"])
            claims.finish_unchanged([item.pk for item, _ in unchanged], self.worker, sync=self.job.sync)
        self._report()

    def _store(self) -> None:
        if not self._prepared:
            return
        prepared, self._prepared, self._chunks = self._prepared, [], 0
        chunks = {it.claim.pk: len(it.document.text.chunks) for it in prepared}
        self.steps.begin(Doing.EMBEDDING, list(chunks))
        self._pace.store()
        listener = _Listener(self, {it.document.item.external_id: it for it in prepared}, self._pace, chunks)
        try:
            seconds = encode_and_store([it.document for it in prepared], self.job.target, listener)
        except ModelMissingError:
            raise
        except EncoderError as error:
            for it in prepared:
                self.fail_or_retry(it.claim, error)
            return
        Sync.objects.filter(pk=self.job.sync.pk).update(encode_seconds=F("encode_seconds") + seconds)
        self._report()

    def fail_or_retry(self, claim: SyncItem, error: Exception) -> None:
        """Mark a claimed item as failed, or as waiting for another try."""
        reason, message = reason_of(error)
        claims.fail_or_retry(claim, self.worker, sync=self.job.sync, reason=reason, message=message)
        logger.info("ingest.problem connection=%s reason=%s", self.job.target.connection.slug, reason)

    def _require_running(self) -> None:
        if time.monotonic() - self._checked_at < _CHECK_SECONDS:
            return
        self._checked_at = time.monotonic()
        if not Sync.objects.filter(pk=self.job.sync.pk, status=Sync.Status.RUNNING).exists():
            raise SyncEndedError

    def _report(self) -> None:
        reload(self.job.sync)
        self.progress(self.job.sync)


@dataclass(slots=True)
class _Listener(StoreListener):
    work: Work
    prepared: Mapping[str, _Prepared]
    pace: _PaceRecorder
    chunks: Mapping[int, int]
    _share: float = 0.0
    _updated_at: float = field(default_factory=time.monotonic)
    _written_at: float = field(default_factory=time.monotonic)

    def calling(self) -> None:
        self.work.steps.progress()

    def embedded(self, share: float) -> None:
        now, total = time.monotonic(), sum(self.chunks.values())
        before, self._share = self._share, max(share, self._share)
        made = int(total * self._share) - int(total * before)
        seconds, self._updated_at = now - self._updated_at, now
        if share >= 1.0:
            claims.set_storing(list(self.chunks), self.work.worker)
        elif now - self._written_at >= _EVERY_SECONDS:
            self._written_at = now
            claims.set_embedded_share(list(self.chunks), self.work.worker, self._share)
        self.pace.add(Effort(chunks=made, embedding_seconds=seconds))

    def storing(self, document: PreparedDocument) -> None:
        self.work.steps.begin(Doing.STORING, [self.prepared[document.item.external_id].claim.pk])

    def stored(self, document: PreparedDocument) -> None:
        it, work = self.prepared[document.item.external_id], self.work
        chunks = len(document.text.chunks)
        claims.finish(it.claim.pk, work.worker, sync=work.job.sync, outcome=it.outcome, chunks=chunks)

    def rejected(self, document: PreparedDocument, error: DatabaseError) -> None:
        self.work.fail_or_retry(self.prepared[document.item.external_id].claim, error)
