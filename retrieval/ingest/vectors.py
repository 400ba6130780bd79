"""The vectors of documents for every embedding index, made before the documents are stored."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from uuid import UUID

import numpy as np

from corecube.errors import ConfigError
from retrieval.encoders import Encoder
from retrieval.engine.types import Vector
from retrieval.errors import EncoderError
from retrieval.index import active
from retrieval.index.embedding_index import all_indexes, vectors_key
from retrieval.index.store import VectorIndex
from retrieval.ingest.embedding import NO_LISTENER, ChunkText, DocumentText, Listener, embed_documents, embed_texts
from retrieval.models import Chunk, Embedding, EmbeddingIndex

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class DocumentVectors:
    """The vectors of some documents' chunks, by index; stored texts are not embedded again."""

    #: By document id.
    texts: dict[UUID, DocumentText]
    #: The caller's index and its model.
    index: VectorIndex
    encoder: Encoder
    #: Gets the progress over all indexes.
    listener: Listener = NO_LISTENER
    #: Seconds in encoders so far.
    seconds: float = 0.0
    _by_index: dict[int, dict[UUID, list[Vector]]] = field(default_factory=dict)

    @property
    def indexes(self) -> frozenset[int]:
        """The indexes with vectors."""
        return frozenset(self._by_index)

    def make(self) -> None:
        """Make the vectors for the indexes that have none yet.

        Raises EncoderError when the active index's model fails. When another index's model fails, that index is no
        longer ready, and its next build adds the vectors.
        """
        rows = all_indexes()
        for place, row in enumerate(rows):
            if row.pk not in self._by_index:
                twins = (it.pk for it in rows if it.pk in self._by_index and vectors_key(it) == vectors_key(row))
                twin = next(twins, None)
                part = _Part(self.listener, place, len(rows))
                self._by_index[row.pk] = self._made(row, part) if twin is None else self._by_index[twin]

    def of(self, document: UUID, place: int, indexes: frozenset[int]) -> dict[int, Vector]:
        """Return the vectors of a document's chunk at that place, by index, for those of the indexes that have any."""
        found = self._by_index.items()
        return {index: made[document][place] for index, made in found if index in indexes and document in made}

    def _made(self, row: EmbeddingIndex, listener: Listener) -> dict[UUID, list[Vector]]:
        started = perf_counter()
        try:
            encoder = self.encoder if row.pk == self.index.id else active.encoder_of(row)
            return self._vectors(row, encoder, listener)
        except (EncoderError, ConfigError) as error:
            if row.status == EmbeddingIndex.Status.ACTIVE:
                raise
            logger.warning("ingest.index_left_out index=%d code=%s", row.pk, error.code)
            EmbeddingIndex.objects.filter(pk=row.pk).update(ready_at=None, problem=str(error))
            return {}
        finally:
            self.seconds += perf_counter() - started

    def _vectors(self, row: EmbeddingIndex, encoder: Encoder, listener: Listener) -> dict[UUID, list[Vector]]:
        stored = _stored(list(self.texts), row.pk)
        if row.mode == EmbeddingIndex.Mode.LATE:
            known = {
                key: [vector for vector in vectors if vector is not None]
                for key, (text, vectors) in stored.items()
                if text == self.texts[key]
            }
            made = {key: vectors for key, vectors in known.items() if vectors and len(vectors) == len(stored[key][1])}
            new = [key for key in self.texts if key not in made]
            vectors = embed_documents([self.texts[key] for key in new], encoder, mode=row.mode, listener=listener)
            return made | dict(zip(new, vectors, strict=True))
        by_text = {
            text: vector
            for document, vectors in stored.values()
            for text, vector in zip(document.embedded, vectors, strict=True)
            if vector is not None
        }
        wanted = [text for document in self.texts.values() for text in document.embedded]
        by_text |= embed_texts([text for text in wanted if text not in by_text], encoder, listener)
        return {key: [by_text[text] for text in document.embedded] for key, document in self.texts.items()}


@dataclass(frozen=True, slots=True)
class _Part(Listener):
    """Reports the progress of one of several equal parts, counted from 0, to the listener of all of them."""

    listener: Listener
    place: int
    parts: int

    def calling(self) -> None:
        self.listener.calling()

    def embedded(self, share: float) -> None:
        self.listener.embedded((self.place + share) / self.parts)


@dataclass(frozen=True, slots=True)
class StoredText:
    """A stored document's texts, and the ordinals of its chunks."""

    text: DocumentText
    ordinals: tuple[int, ...]
    #: Digest of the document's bytes and of how they were ingested.
    fingerprint: str


def stored_texts(ids: Sequence[UUID]) -> dict[UUID, StoredText]:
    """Return the stored texts of documents that vectors are made from; chunks in order."""
    rows = Chunk.objects.filter(document_id__in=ids).select_related("document").order_by("document_id", "ordinal")
    chunks: dict[UUID, list[Chunk]] = {}
    for chunk in rows.defer("search", "minhash", "quality_parts"):
        chunks.setdefault(chunk.document_id, []).append(chunk)
    return {
        key: StoredText(
            DocumentText(
                found[0].document.title,
                tuple(ChunkText(tuple(it.heading_path), it.text, it.context_line) for it in found),
            ),
            tuple(it.ordinal for it in found),
            found[0].document.fingerprint,
        )
        for key, found in chunks.items()
    }


def _stored(ids: Sequence[UUID], index: int) -> dict[UUID, tuple[DocumentText, list[Vector | None]]]:
    """Return the stored texts of documents, with each chunk's vector in the index, None for a missing one."""
    embeddings = Embedding.objects.filter(document_id__in=ids, index_id=index)
    vectors = {(it.document_id, it.ordinal): it.vector.to_numpy().astype(np.float32) for it in embeddings}
    return {
        key: (stored.text, [vectors.get((key, ordinal)) for ordinal in stored.ordinals])
        for key, stored in stored_texts(ids).items()
    }
