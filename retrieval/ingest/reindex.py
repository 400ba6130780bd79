"""Building an embedding index while another one is searched.

The remaining work is what the tables lack, so a build that is killed continues where it stopped, and can be repeated.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Final
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from corecube.errors import CoreCubeError
from retrieval.encoders import Encoder
from retrieval.encoders.protocol import WindowEncoder
from retrieval.index import active
from retrieval.index.embedding_index import only_builder, progress, searched, vectors_key
from retrieval.index.writer import MissingVector, copy_vectors, fill_index, lacking_documents
from retrieval.ingest.vectors import StoredText, embed_documents, stored_texts
from retrieval.models import Document, EmbeddingIndex

logger = logging.getLogger(__name__)

Report = Callable[[EmbeddingIndex], None]

_BATCH_CHUNKS: Final = 256  #: Minimum of chunks that are embedded together, and maximum of documents read for them.
_BATCH_DOCUMENTS: Final = 64
_COPIED_DOCUMENTS: Final = 500
_FIRST: Final = UUID(int=0)


def build_index(row: EmbeddingIndex, *, report: Report = lambda _: None) -> bool:
    """Make a vector for every chunk in an index, and return whether it is complete.

    Chunks that an earlier version cut are embedded again, as a whole; searches use the previous vectors until then.
    It is not complete when another process builds it, or when it was dropped meanwhile. `report` is called after every
    batch. Raises EncoderError or ConfigError when its model cannot be used; the row then has the message.
    """
    with only_builder(row) as is_builder:
        if not is_builder:
            return False
        try:
            _fill(row, active.encoder_of(row), report)
        except CoreCubeError as error:
            _rows(row).update(problem=str(error))
            raise
    return _rows(row).filter(ready_at__isnull=False).exists()


def unfinished_indexes() -> list[EmbeddingIndex]:
    """Return the indexes that are not complete, or in which an earlier version cut long chunks."""
    return list(EmbeddingIndex.objects.filter(Q(ready_at__isnull=True) | Q(pools_windows=False)).order_by("pk"))


def _fill(row: EmbeddingIndex, encoder: Encoder, report: Report) -> None:
    if not row.pools_windows:
        _pool_windows(row, encoder, report)
    # The vectors of another index with the same model need no embedding.
    twin = EmbeddingIndex.objects.exclude(pk=row.pk).filter(**vectors_key(row)).first()
    copied_to = _FIRST
    while twin and (lacking := lacking_documents(searched(row), after=copied_to, limit=_COPIED_DOCUMENTS)):
        started = perf_counter()
        copied = copy_vectors(source=twin.pk, target=row.pk, documents=[document for document, _ in lacking])
        _record(row, copied, perf_counter() - started)
        copied_to = lacking[-1][0]
        report(row)
    while _rows(row).exists():
        after: UUID | None = _FIRST
        while after is not None:
            after = _fill_some(row, encoder, after)
            report(row)
        if not progress(row).missing:
            _rows(row).update(ready_at=timezone.now(), problem="")
            logger.info("index.ready index=%d", row.pk)
            return


def _fill_some(row: EmbeddingIndex, encoder: Encoder, after: UUID) -> UUID | None:
    """Embed the next documents, by id, and return the last of them; None when there were none."""
    index = searched(row)
    started = perf_counter()
    batch: list[UUID] = []
    chunks = 0
    for document, count in lacking_documents(index, after=after, limit=_BATCH_DOCUMENTS):
        if chunks >= _BATCH_CHUNKS:
            break
        batch.append(document)
        chunks += count
    if not batch:
        return None
    vectors = _made(row, encoder, stored_texts(batch))
    fill_index(index, vectors)
    _record(row, len(vectors), perf_counter() - started)
    return batch[-1]


def _pool_windows(row: EmbeddingIndex, encoder: Encoder, report: Report) -> None:
    """Embed the chunks again that are longer than the model's input, which earlier versions cut."""
    documents = Document.objects.order_by("pk").values_list("pk", flat=True)
    after = _FIRST
    while isinstance(encoder, WindowEncoder) and (batch := list(documents.filter(pk__gt=after)[:_BATCH_DOCUMENTS])):
        started = perf_counter()
        if long := dict(_long_texts(batch, encoder, row.mode)):
            vectors = _made(row, encoder, long)
            fill_index(searched(row), vectors, replaces=True)
            _record(row, len(vectors), perf_counter() - started)
            report(row)
        after = batch[-1]
    _rows(row).update(pools_windows=True)
    logger.info("index.windows_pooled index=%d", row.pk)


def _long_texts(documents: Sequence[UUID], encoder: WindowEncoder, mode: str) -> Iterator[tuple[UUID, StoredText]]:
    """Yield the documents' chunks that are longer than the model's input; where it reads documents, all beside them."""
    for key, stored in stored_texts(documents).items():
        is_long = [count > 1 for count in encoder.count_windows(stored.text.embedded)]
        if any(is_long):
            yield key, stored if mode == EmbeddingIndex.Mode.LATE else stored.only(is_long)


def _made(row: EmbeddingIndex, encoder: Encoder, stored: Mapping[UUID, StoredText]) -> list[MissingVector]:
    made = embed_documents([it.text for it in stored.values()], encoder, mode=row.mode)
    return [
        MissingVector(key, ordinal, it.fingerprint, vector, chunk.context)
        for (key, it), found in zip(stored.items(), made, strict=True)
        for ordinal, chunk, vector in zip(it.ordinals, it.text.chunks, found, strict=True)
    ]


def _record(row: EmbeddingIndex, vectors: int, seconds: float) -> None:
    total = F("build_seconds") + seconds
    _rows(row).update(built=F("built") + vectors, build_seconds=total, heartbeat_at=timezone.now(), problem="")


def _rows(row: EmbeddingIndex) -> QuerySet[EmbeddingIndex]:
    return EmbeddingIndex.objects.filter(pk=row.pk)
