"""Encoding and storing prepared documents in batches that span documents, so that the encoder is never idle."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

import psycopg
from django.db import DatabaseError, DataError, OperationalError
from django.db.models import Q

from corecube.errors import UnknownConnectionError
from corecube.models import Connection
from retrieval.encoders import Encoder
from retrieval.graph.document import DocumentGraph
from retrieval.index.embedding_index import hold_indexes
from retrieval.index.store import VectorIndex
from retrieval.index.writer import EncodedChunk, StoredDocument, committed_later, hold_connection, store_documents
from retrieval.ingest import prepared_document
from retrieval.ingest.enrich.triples import Triple, triples_of
from retrieval.ingest.preparation import PreparedChunk
from retrieval.ingest.prepared_document import PreparedDocument, modified_at, raw_type
from retrieval.ingest.vectors import ChunkText, DocumentText, DocumentVectors, Listener
from retrieval.models import Chunk, Document
from retrieval.models.document import document_id

#: Chunks encoded together. Enough to sort well by length; few enough to lose when the process is killed.
BATCH_CHUNKS: Final = 256
#: The database cannot store the value, and another try would fail as well.
_REJECTIONS: Final = (psycopg.DataError, psycopg.errors.ProgramLimitExceeded)
_Written = tuple[str, tuple[str, ...], tuple[Triple, ...] | None]


@dataclass(frozen=True, slots=True)
class Target:
    """Where the documents of one sync are stored, and how they are encoded."""

    connection: Connection
    encoder: Encoder
    index: VectorIndex
    text_search_config: str
    synced_at: datetime


class ClaimLostError(Exception):
    """Another worker has the item now, or its sync has ended."""


class StoreListener(Listener):
    """Follows the embedding and storing of documents; an exception from its methods ends the work."""

    def storing(self, document: PreparedDocument) -> None:
        """React to a document that is about to be stored."""

    def stored(self, document: PreparedDocument) -> None:
        """React within the transaction that stores the document; ClaimLostError rolls it back."""

    def rejected(self, document: PreparedDocument, error: DatabaseError) -> None:  # noqa: ARG002 -- for overriding
        """React to a document that the database cannot store; return to continue with the others."""
        raise error


_NO_LISTENER: Final = StoreListener()


def encode_and_store(
    documents: Sequence[PreparedDocument], target: Target, listener: StoreListener = _NO_LISTENER
) -> float:
    """Embed the documents' chunks together, store each document separately, and return the seconds in the encoder.

    A chunk whose text is already stored for its document keeps its vector. The listener is called with all chunks
    embedded before anything is stored.
    Raises UnknownConnectionError, with nothing stored, when the connection was deleted meanwhile, and what the
    listener's methods raise, except ClaimLostError.
    """
    documents = _with_stored_enrichment(documents, target.connection.pk)
    vectors = DocumentVectors(
        {_key(document, target): _text(document) for document in documents}, target.index, target.encoder, listener
    )
    vectors.make()
    listener.embedded(1.0)
    for document in documents:
        listener.storing(document)
        try:
            while not _store(document, target, vectors, listener):
                vectors.make()
        except ClaimLostError:
            continue
        except (DataError, OperationalError) as error:
            if not isinstance(error.__cause__, _REJECTIONS):
                raise
            listener.rejected(document, error)
    return vectors.seconds


def _store(document: PreparedDocument, target: Target, vectors: DocumentVectors, listener: StoreListener) -> bool:
    """Store a document; return False, with nothing stored, when an index exists that it has no vectors for."""
    # A crash may lose the last documents together with the state of their items, so they are ingested again.
    with committed_later():
        # No constraint ties documents to their connection, so it is locked until the transaction ends.
        if not hold_connection(target.connection.pk):
            raise UnknownConnectionError("The connection was deleted during the sync.")
        indexes = hold_indexes()
        if not indexes <= vectors.indexes:
            return False
        key = _key(document, target)
        chunks = tuple(
            EncodedChunk(
                chunk.draft,
                content_hash=chunk.content_hash,
                simhash=chunk.simhash,
                quality=chunk.quality,
                vectors=vectors.of(key, place, indexes),
                traits=chunk.traits,
            )
            for place, chunk in enumerate(document.text.chunks)
        )
        graph = DocumentGraph(document.text.names, tuple(chunk.graph for chunk in document.text.chunks))
        stored = StoredDocument(_row(document, target), chunks, graph)
        store_documents([stored], text_search_config=target.text_search_config, progress=listener.calling)
        listener.stored(document)
    return True


def _key(document: PreparedDocument, target: Target) -> UUID:
    return document_id(target.connection.pk, document.item.external_id)


def _text(document: PreparedDocument) -> DocumentText:
    drafts = (chunk.draft for chunk in document.text.chunks)
    chunks = (ChunkText(tuple(it.heading_path), it.text, it.context_line) for it in drafts)
    return DocumentText(document.text.title, tuple(chunks))


def _row(document: PreparedDocument, target: Target) -> Document:
    connection = target.connection
    return Document(
        id=_key(document, target),
        connection=connection,
        external_id=document.item.external_id,
        title=document.text.title,
        uri=document.item.uri,
        source_type=connection.source_type or document.text.source_type,
        fingerprint=document.fingerprint,
        version=document.version,
        ingest_version=prepared_document.INGEST_VERSION,
        raw_type=raw_type(document.item),
        byte_size=document.byte_size,
        metadata=dict(document.text.metadata),
        modified_at=modified_at(document, now=target.synced_at),
        synced_at=target.synced_at,
    )


def _with_stored_enrichment(documents: Sequence[PreparedDocument], connection_id: int) -> list[PreparedDocument]:
    """Return the documents with the stored enrichment of unchanged chunks, which costs money to make again."""
    ids = {document_id(connection_id, document.item.external_id): document for document in documents}
    written: dict[tuple[UUID, str], _Written] = {
        (identity, digest): (context, tuple(questions), triples_of(triples))
        for identity, digest, context, questions, triples in Chunk.objects.filter(document_id__in=list(ids))
        .exclude(Q(context_line="") & Q(questions=[]) & Q(triples__isnull=True))
        .values_list("document_id", "content_hash", "context_line", "questions", "triples")
    }
    if not written:
        return list(documents)
    return [
        replace(
            document,
            text=replace(document.text, chunks=tuple(_enriched(it, identity, written) for it in document.text.chunks)),
        )
        for identity, document in ids.items()
    ]


def _enriched(chunk: PreparedChunk, identity: UUID, written: dict[tuple[UUID, str], _Written]) -> PreparedChunk:
    context, questions, triples = written.get((identity, chunk.content_hash), ("", (), None))
    return replace(chunk, draft=replace(chunk.draft, context_line=context, questions=questions, triples=triples))
