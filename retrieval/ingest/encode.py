"""Encoding and storing prepared documents in batches that span documents, so that the encoder always has enough."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from corecube.errors import UnknownConnectionError
from corecube.models import Connection
from retrieval.encoders import Encoder
from retrieval.index.embedding_index import hold_indexes
from retrieval.index.store import VectorIndex
from retrieval.index.writer import EncodedChunk, StoredDocument, committed_later, hold_connection, store_documents
from retrieval.ingest.embedding import ChunkText, DocumentText, Progress
from retrieval.ingest.enrich.kept import with_kept_enrichment
from retrieval.ingest.prepare import PreparedDocument, content_hash, modified_at, raw_type
from retrieval.ingest.traits import traits_of
from retrieval.ingest.types import ChunkDraft
from retrieval.ingest.vectors import DocumentVectors
from retrieval.models import Document
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


class ClaimLostError(Exception):
    """Somebody else does the work by now, or nobody wants it any more."""


def encode_and_store(
    documents: Sequence[PreparedDocument],
    target: Target,
    finish: Callable[[PreparedDocument], None] = lambda _: None,
    progress: Progress = lambda _: None,
) -> float:
    """Embed the documents' chunks together, store each document on its own, and return the seconds in the encoder.

    `progress` hears which share of the chunks is embedded, and last 1.0, before anything is stored.
    `finish` is called in each document's transaction; when it raises ClaimLostError, that document is not stored.
    A chunk that the store holds of its document already, word for word, keeps its vector.
    Raises UnknownConnectionError, with nothing stored, when the connection was deleted meanwhile.
    """
    documents = with_kept_enrichment(documents, target.connection.pk)
    vectors = DocumentVectors(
        {_key(document, target): _text(document) for document in documents}, target.index, target.encoder, progress
    )
    vectors.make()
    progress(1.0)
    for document in documents:
        with suppress(ClaimLostError):
            while not _stored(document, target, vectors, finish):
                vectors.make()
    return vectors.seconds


def _stored(
    document: PreparedDocument,
    target: Target,
    vectors: DocumentVectors,
    finish: Callable[[PreparedDocument], None],
) -> bool:
    """Store a document; return False, with nothing stored, when there is an index that it has no vectors for."""
    # A crash may lose the last of them together with their rows' word that they are done: they are taken in again.
    with committed_later():
        _hold(target.connection)
        kept = hold_indexes()
        if not kept <= vectors.indexes:
            return False
        key = _key(document, target)
        chunks = tuple(
            _encoded(draft, vectors.of(key, place, kept), document.source_type)
            for place, draft in enumerate(document.chunks)
        )
        store_documents([StoredDocument(_row(document, target), chunks)], text_search_config=target.text_search_config)
        finish(document)
    return True


def _key(document: PreparedDocument, target: Target) -> UUID:
    return document_id(target.connection.pk, document.item.external_id)


def _text(document: PreparedDocument) -> DocumentText:
    chunks = (ChunkText(tuple(it.heading_path), it.text, it.context_line) for it in document.chunks)
    return DocumentText(document.title, tuple(chunks))


def _encoded(draft: ChunkDraft, vectors: Mapping[int, Vector], source_type: str) -> EncodedChunk:
    return EncodedChunk(
        draft,
        content_hash=content_hash(draft.text),
        simhash=simhash(draft.text),
        quality=quality_of(draft.text),
        vectors=vectors,
        traits=traits_of(draft, source_type=source_type),
    )


def _hold(connection: Connection) -> None:
    """Keep the connection from being deleted until the transaction ends; no constraint ties its documents to it."""
    if not hold_connection(connection.pk):
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
        version=document.version,
        raw_type=raw_type(document.item),
        byte_size=document.byte_size,
        metadata=dict(document.metadata),
        modified_at=modified_at(document, now=target.synced_at),
        synced_at=target.synced_at,
    )
