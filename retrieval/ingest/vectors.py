"""The vectors of documents that are to be stored, for every embedding index that is kept."""

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
from retrieval.index.embedding_index import kept_indexes, vectors_key
from retrieval.index.store import VectorIndex
from retrieval.ingest.embedding import NO_LISTENER, ChunkText, DocumentText, Listener, embed_documents, embed_texts
from retrieval.models import Chunk, Embedding, EmbeddingIndex

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class DocumentVectors:
    """The vectors of some documents' chunks, by index; what the store holds already is not embedded again."""

    #: By document id, what is to be stored.
    texts: dict[UUID, DocumentText]
    #: The index and the model that the caller has at hand.
    index: VectorIndex
    encoder: Encoder
    #: Hears of the vectors for all indexes together.
    listener: Listener = NO_LISTENER
    #: Seconds in encoders so far.
    seconds: float = 0.0
    _by_index: dict[int, dict[UUID, list[Vector]]] = field(default_factory=dict)

    @property
    def indexes(self) -> frozenset[int]:
        """The indexes that are dealt with."""
        return frozenset(self._by_index)

    def make(self) -> None:
        """Make the vectors of the indexes that are kept and not dealt with yet.

        Raises EncoderError when the active index's model fails. Another index goes without these vectors then; it is
        not ready any more, and its building adds them later.
        """
        rows = kept_indexes()
        for place, row in enumerate(rows):
            if row.pk not in self._by_index:
                twins = (it.pk for it in rows if it.pk in self._by_index and vectors_key(it) == vectors_key(row))
                twin = next(twins, None)
                part = _Part(self.listener, place, len(rows))
                self._by_index[row.pk] = self._made(row, part) if twin is None else self._by_index[twin]

    def of(self, document: UUID, place: int, kept: frozenset[int]) -> dict[int, Vector]:
        """Return the vectors of a document's chunk at that place, by index, for those of the indexes that are kept."""
        return {
            index: made[document][place] for index, made in self._by_index.items() if index in kept and document in made
        }

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
            known = {key: whole(vectors) for key, (text, vectors) in stored.items() if text == self.texts[key]}
            made = {key: vectors for key, vectors in known.items() if vectors}
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
    """Hears of one of several equal parts, counted from 0, and tells another listener of the whole."""

    whole: Listener
    place: int
    parts: int

    def calling(self) -> None:
        self.whole.calling()

    def embedded(self, share: float) -> None:
        self.whole.embedded((self.place + share) / self.parts)


def whole(vectors: Sequence[Vector | None]) -> list[Vector]:
    """Return the vectors, none of them when one is missing."""
    found = [vector for vector in vectors if vector is not None]
    return found if len(found) == len(vectors) else []


@dataclass(frozen=True, slots=True)
class StoredText:
    """What the store holds of a document, and the ordinals of its chunks."""

    text: DocumentText
    ordinals: tuple[int, ...]
    #: Of the document's bytes and of how they were taken in.
    fingerprint: str


def stored_texts(ids: Sequence[UUID]) -> dict[UUID, StoredText]:
    """Return what the store holds of documents, as their vectors are made of it; chunks in order."""
    rows = Chunk.objects.filter(document_id__in=ids).select_related("document").order_by("document_id", "ordinal")
    chunks: dict[UUID, list[Chunk]] = {}
    for chunk in rows.defer("search", "minhash", "quality_parts"):
        chunks.setdefault(chunk.document_id, []).append(chunk)
    return {key: _stored_text(found) for key, found in chunks.items()}


def _stored_text(chunks: Sequence[Chunk]) -> StoredText:
    document = chunks[0].document
    texts = tuple(ChunkText(tuple(it.heading_path), it.text, it.context_line) for it in chunks)
    return StoredText(DocumentText(document.title, texts), tuple(it.ordinal for it in chunks), document.fingerprint)


def _stored(ids: Sequence[UUID], index: int) -> dict[UUID, tuple[DocumentText, list[Vector | None]]]:
    """Return what the store holds of documents, with each chunk's vector in the index, None for one that lacks it."""
    embeddings = Embedding.objects.filter(document_id__in=ids, index_id=index)
    vectors = {(it.document_id, it.ordinal): it.vector.to_numpy().astype(np.float32) for it in embeddings}
    return {
        key: (stored.text, [vectors.get((key, ordinal)) for ordinal in stored.ordinals])
        for key, stored in stored_texts(ids).items()
    }
