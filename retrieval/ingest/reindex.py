"""Filling an embedding index beside the one that is searched.

What is left to do is what the tables lack, so a build that is killed goes on where it stopped, and running it twice
does no harm.
"""

import logging
from collections.abc import Callable
from time import perf_counter
from typing import Final
from uuid import UUID

from django.db.models import F, QuerySet
from django.utils import timezone

from corecube.errors import CoreCubeError
from retrieval.encoders import Encoder
from retrieval.index import active
from retrieval.index.embedding_index import only_builder, progress, searched, twin_of
from retrieval.index.writer import MissingVector, copy_vectors, fill_index, lacking_documents
from retrieval.ingest.embedding import embed_documents
from retrieval.ingest.vectors import stored_texts
from retrieval.models import EmbeddingIndex

logger = logging.getLogger(__name__)

Report = Callable[[EmbeddingIndex], None]

#: Chunks that are embedded together, at least, and documents that are looked at for them.
_BATCH_CHUNKS: Final = 256
_BATCH_DOCUMENTS: Final = 64
#: Documents whose vectors are copied together.
_COPIED_DOCUMENTS: Final = 500
_FIRST: Final = UUID(int=0)


def build_index(row: EmbeddingIndex, *, report: Report = lambda _: None) -> bool:
    """Give every chunk a vector in an index, and return whether it is complete.

    It is not when somebody else builds it, or when it was dropped meanwhile. `report` is called after every batch.
    Raises EncoderError or ConfigError when its model cannot be used, which the row then says.
    """
    with only_builder(row) as is_ours:
        if not is_ours:
            return False
        try:
            _fill(row, active.encoder_of(row), report)
        except CoreCubeError as error:
            _rows(row).update(problem=str(error))
            raise
    return _rows(row).filter(ready_at__isnull=False).exists()


def unfinished_indexes() -> list[EmbeddingIndex]:
    """Return the indexes that lack vectors, as far as is known."""
    return list(EmbeddingIndex.objects.filter(ready_at__isnull=True).order_by("pk"))


def _fill(row: EmbeddingIndex, encoder: Encoder, report: Report) -> None:
    """Go through the documents until none lacks anything, or until the index is dropped."""
    _copy(row, report)
    while _rows(row).exists():
        after: UUID | None = _FIRST
        while after is not None:
            after = _fill_some(row, encoder, after)
            report(row)
        if not progress(row).missing:
            _rows(row).update(ready_at=timezone.now(), problem="")
            logger.info("index.ready index=%d", row.pk)
            return


def _copy(row: EmbeddingIndex, report: Report) -> None:
    """Take what another index with the same vectors has, which takes no model; the rest is left to be embedded."""
    twin = twin_of(row)
    after = _FIRST
    while twin and (lacking := lacking_documents(searched(row), after=after, limit=_COPIED_DOCUMENTS)):
        started = perf_counter()
        copied = copy_vectors(source=twin.pk, target=row.pk, documents=[document for document, _ in lacking])
        _record(row, copied, perf_counter() - started)
        after = lacking[-1][0]
        report(row)


def _fill_some(row: EmbeddingIndex, encoder: Encoder, after: UUID) -> UUID | None:
    """Fill in the next documents, by id, and return the last of them; None when there were none."""
    index = searched(row)
    started = perf_counter()
    lacking = _batch(lacking_documents(index, after=after, limit=_BATCH_DOCUMENTS))
    if not lacking:
        return None
    stored = stored_texts(lacking)
    made = embed_documents([it.text for it in stored.values()], encoder, mode=row.mode)
    vectors = [
        MissingVector(key, ordinal, it.fingerprint, vector, chunk.context)
        for (key, it), found in zip(stored.items(), made, strict=True)
        for ordinal, chunk, vector in zip(it.ordinals, it.text.chunks, found, strict=True)
    ]
    fill_index(index, vectors)
    _record(row, len(vectors), perf_counter() - started)
    return lacking[-1]


def _record(row: EmbeddingIndex, vectors: int, seconds: float) -> None:
    """Note how much was built in how long, and that somebody builds."""
    now = timezone.now()
    _rows(row).update(
        built=F("built") + vectors, build_seconds=F("build_seconds") + seconds, heartbeat_at=now, problem=""
    )


def _batch(lacking: list[tuple[UUID, int]]) -> list[UUID]:
    """Return as many of the documents as have a batch's chunks, at least one where there is one."""
    taken: list[UUID] = []
    chunks = 0
    for document, count in lacking:
        if chunks >= _BATCH_CHUNKS:
            break
        taken.append(document)
        chunks += count
    return taken


def _rows(row: EmbeddingIndex) -> QuerySet[EmbeddingIndex]:
    return EmbeddingIndex.objects.filter(pk=row.pk)
