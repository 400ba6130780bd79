"""Embedding of many chunks in batches across documents, and the vectors of documents for every embedding index."""

import logging
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import compress
from time import perf_counter
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from corecube.errors import ConfigError
from retrieval.encoders import Encoder
from retrieval.encoders.admission import effective_calls, ingest_slot
from retrieval.encoders.protocol import PassageEncoder
from retrieval.encoders.session import run_in_parallel
from retrieval.engine.types import Vector
from retrieval.errors import EncoderError
from retrieval.index import active
from retrieval.index.embedding_index import all_indexes, vectors_key
from retrieval.index.store import VectorIndex
from retrieval.models import Chunk, Embedding, EmbeddingIndex
from retrieval.text.document import in_context

logger = logging.getLogger(__name__)


class Listener:
    """Follows the progress of embedding, and may end it."""

    def calling(self) -> None:
        """Allow the next call of the model, in any thread; an exception ends the work."""

    def embedded(self, share: float) -> None:
        """Get the share of the texts that have vectors, 0 to 1; called repeatedly."""


NO_LISTENER: Final = Listener()


@dataclass(frozen=True, slots=True)
class ChunkText:
    """The parts of a chunk that its vector is made from."""

    heading_path: tuple[str, ...]
    text: str
    context: str = ""


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The parts of a document that its chunks' vectors are made from."""

    title: str
    chunks: tuple[ChunkText, ...]

    @property
    def embedded(self) -> list[str]:
        """Each chunk as the model reads it alone."""
        return [in_context(self.title, it.heading_path, it.text, it.context) for it in self.chunks]

    @property
    def passages(self) -> list[str]:
        """Each chunk as the model reads it within its document: under its last heading."""
        return ["\n".join((*it.heading_path[-1:], it.text)) for it in self.chunks]


def embed_documents(
    documents: Sequence[DocumentText], encoder: Encoder, *, mode: str, listener: Listener = NO_LISTENER
) -> list[list[Vector]]:
    """Return every chunk's unit vector by document; raise EncoderError, ConfigError, or what the listener raises."""
    if mode == EmbeddingIndex.Mode.LATE:
        return [list(vectors) for vectors in _embed_late(documents, encoder, listener)]
    known = embed_texts([text for document in documents for text in document.embedded], encoder, listener)
    return [[known[text] for text in document.embedded] for document in documents]


def embed_texts(texts: Sequence[str], encoder: Encoder, listener: Listener = NO_LISTENER) -> dict[str, Vector]:
    """Return the unit vector of every text; a repeated text is embedded once."""
    # Longest first, so that the slowest calls start first and texts of a call have similar lengths, in characters.
    new = sorted(dict.fromkeys(texts), key=lambda text: (-len(text), text))
    batching = encoder.batching
    batches = [new[start : start + batching.texts] for start in range(0, len(new), batching.texts)]

    def embed(batch: list[str]) -> NDArray[np.float32]:
        with ingest_slot():
            listener.calling()
            return encoder.encode_documents(batch)

    with closing(run_in_parallel(embed, batches, threads=effective_calls(batching.calls))) as answers:
        made: dict[str, Vector] = {}
        for batch, vectors in zip(batches, answers, strict=True):
            made |= zip(batch, vectors, strict=True)
            listener.embedded(len(made) / len(new))
        return made


def _embed_late(documents: Sequence[DocumentText], encoder: Encoder, listener: Listener) -> list[NDArray[np.float32]]:
    if not isinstance(encoder, PassageEncoder):
        raise ConfigError(f"The model {encoder.name!r} does not support late chunking.")

    def read(document: DocumentText) -> NDArray[np.float32]:
        with ingest_slot():
            return encoder.encode_passages(document.title, document.passages, progress=listener.calling)

    chunks = sum(len(document.chunks) for document in documents)
    with closing(run_in_parallel(read, documents, threads=effective_calls(encoder.batching.calls))) as answers:
        made: list[NDArray[np.float32]] = []
        for vectors in answers:
            made.append(vectors)
            listener.embedded(sum(map(len, made)) / chunks)
        return made


@dataclass(slots=True)
class DocumentVectors:
    """The vectors of some documents' chunks, by index; stored texts are not embedded again."""

    texts: dict[UUID, DocumentText]
    index: VectorIndex
    encoder: Encoder
    listener: Listener = NO_LISTENER
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
        ids = list(self.texts)
        embeddings = Embedding.objects.filter(document_id__in=ids, index_id=row.pk)
        by_chunk = {(it.document_id, it.ordinal): it.vector.to_numpy().astype(np.float32) for it in embeddings}
        stored = {
            key: (it.text, [by_chunk.get((key, ordinal)) for ordinal in it.ordinals])
            for key, it in stored_texts(ids).items()
        }
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
    fingerprint: str

    def only(self, chunks: Sequence[bool]) -> "StoredText":
        """Return the text with the chunks at the places that are True."""
        text = replace(self.text, chunks=tuple(compress(self.text.chunks, chunks)))
        return replace(self, text=text, ordinals=tuple(compress(self.ordinals, chunks)))


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
