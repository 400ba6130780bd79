"""Storing the progress of a sync while a worker processes it: the share of embedded chunks, and the pace."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.db import transaction

from retrieval.ingest import claims
from retrieval.ingest.pace import Effort, with_work
from retrieval.models import Sync

_EVERY_SECONDS: Final = 1.0


@dataclass(slots=True)
class PaceRecorder:
    """Adds the effort of a worker to its sync's pace, at most once a second."""

    sync: Sync
    _done: Effort = field(default_factory=Effort)
    _stored_at: float = 0.0

    def __post_init__(self) -> None:
        self.store()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Count an item that the block reads."""
        started = time.monotonic()
        yield
        self.add(Effort(items=1, reading_seconds=time.monotonic() - started))

    def add(self, done: Effort) -> None:
        """Count the effort, and store it when the last write is a second ago."""
        self._done += done
        if time.monotonic() - self._stored_at >= _EVERY_SECONDS:
            self.store()

    def store(self) -> None:
        """Store the effort since the last write."""
        done, self._done, self._stored_at = self._done, Effort(), time.monotonic()
        with transaction.atomic():
            sync = Sync.objects.select_for_update(no_key=True).filter(pk=self.sync.pk).only("pace").first()
            if sync is not None:
                Sync.objects.filter(pk=sync.pk).update(pace=with_work(sync.pace, done, at=time.time()))


@dataclass(slots=True)
class EmbeddingProgress:
    """Stores which share of a batch's chunks is embedded."""

    pace: PaceRecorder
    worker: UUID
    chunks: Mapping[int, int]
    _share: float = 0.0
    _updated_at: float = field(default_factory=time.monotonic)
    _written_at: float = field(default_factory=time.monotonic)

    def update(self, share: float) -> None:
        """Record the share, 0 to 1; at 1 the storing of the documents begins."""
        now, total = time.monotonic(), sum(self.chunks.values())
        before, self._share = self._share, max(share, self._share)
        made = int(total * self._share) - int(total * before)
        seconds, self._updated_at = now - self._updated_at, now
        if share >= 1.0:
            claims.set_storing(list(self.chunks), self.worker)
        elif now - self._written_at >= _EVERY_SECONDS:
            self._written_at = now
            claims.set_embedded_share(list(self.chunks), self.worker, self._share)
        self.pace.add(Effort(chunks=made, embedding_seconds=seconds))
