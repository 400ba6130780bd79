"""Encoding and storing prepared documents in batches that span documents, so that the encoder always has enough."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from time import perf_counter
from typing import Final

import numpy as np
from django.db import transaction

from corecube.errors import UnknownConnectionError
from corecube.models import Connection
from retrieval.context_line import in_context
from retrieval.encoders import Encoder
from retrieval.index.store import VectorIndex
from retrieval.index.writer import EncodedChunk, StoredDocument, store_documents
from retrieval.ingest.prepare import PreparedDocument, content_hash, embedded_text, modified_at
from retrieval.ingest.types import ChunkDraft
from retrieval.models import Chunk, Document, Embedding
from retrieval.models.document import document_id
from retrieval.quality import quality_of
from retrieval.simhash import simhash
from retrieval.types import Vector

#: Chunks encoded together. Enough to sort by length well; little enough to lose when the process is killed.
BATCH_CHUNKS: Final = 256


@dataclass(frozen=True, slots=True)
class Target:
    """Where documents of one sync go."""

    connection: Connection
    encoder: Encoder
    index: VectorIndex
    text_search_config: str
    synced_at: datetime


def encode_and_store(documents: Sequence[PreparedDocument], target: Target) -> float:
    """Embed the documents' chunks, store all of them in one transaction, and return the seconds in the encoder.

    A chunk that the store holds of its document already, word for word, keeps its vector.
    Raises UnknownConnectionError, with nothing stored, when the connection was deleted meanwhile.
    """
    texts = [embedded_text(document.title, draft) for document in documents for draft in document.chunks]
    known = _stored_vectors(documents, target)
    new = list(dict.fromkeys(text for text in texts if text not in known))
    started = perf_counter()
    if new:
        known.update(zip(new, target.encoder.encode_documents(new), strict=True))
    seconds = perf_counter() - started
    vectors = iter([known[text] for text in texts])
    stored = [
        StoredDocument(
            _row(document, target),
            tuple(_encoded(draft, next(vectors)) for draft in document.chunks),
        )
        for document in documents
    ]
    with transaction.atomic():
        _hold(target.connection)
        store_documents(stored, index=target.index, text_search_config=target.text_search_config)
    return seconds


def _encoded(draft: ChunkDraft, vector: Vector) -> EncodedChunk:
    return EncodedChunk(
        draft,
        content_hash=content_hash(draft.text),
        simhash=simhash(draft.text),
        quality=quality_of(draft.text),
        vector=vector,
    )


def _stored_vectors(documents: Sequence[PreparedDocument], target: Target) -> dict[str, Vector]:
    """Return the vectors that the store holds of these documents, by the text that was embedded."""
    ids = [document_id(target.connection.pk, document.item.external_id) for document in documents]
    chunks = Chunk.objects.filter(document_id__in=ids).values_list(
        "document_id", "ordinal", "document__title", "heading_path", "text"
    )
    texts = {(document, ordinal): in_context(title, path, text) for document, ordinal, title, path, text in chunks}
    embeddings = Embedding.objects.filter(document_id__in=ids, index_id=target.index.id)
    return {
        texts[key]: embedding.vector.to_numpy().astype(np.float32)
        for embedding in embeddings
        if (key := (embedding.document_id, embedding.ordinal)) in texts
    }


def _hold(connection: Connection) -> None:
    """Keep the connection from being deleted until the transaction ends; no constraint ties its documents to it."""
    if Connection.objects.select_for_update().filter(pk=connection.pk).first() is None:
        raise UnknownConnectionError("The connection was deleted while it was synced.")


def _row(document: PreparedDocument, target: Target) -> Document:
    connection = target.connection
    return Document(
        id=document_id(connection.pk, document.item.external_id),
        connection=connection,
        external_id=document.item.external_id,
        title=document.title,
        uri=document.item.uri,
        source_type=connection.source_type or document.source_type,
        fingerprint=document.fingerprint,
        byte_size=document.byte_size,
        metadata=dict(document.metadata),
        modified_at=modified_at(document, now=target.synced_at),
        synced_at=target.synced_at,
    )
