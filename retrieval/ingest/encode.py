"""Encoding and storing prepared documents in batches that span documents, so that the encoder always has enough."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import psycopg
from django.db import DatabaseError, DataError, OperationalError

from corecube.errors import UnknownConnectionError
from corecube.models import Connection
from retrieval.encoders import Encoder
from retrieval.engine.types import Vector
from retrieval.graph.document import DocumentGraph
from retrieval.index.embedding_index import hold_indexes
from retrieval.index.store import VectorIndex
from retrieval.index.writer import EncodedChunk, StoredDocument, committed_later, hold_connection, store_documents
from retrieval.ingest.embedding import ChunkText, DocumentText, Listener
from retrieval.ingest.enrich.kept import with_kept_enrichment
from retrieval.ingest.preparation import PreparedChunk
from retrieval.ingest.prepare import PreparedDocument, modified_at, raw_type
from retrieval.ingest.vectors import DocumentVectors
from retrieval.models import Document
from retrieval.models.document import document_id

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


class Taker(Listener):
    """Who has documents embedded and stored, and may end that: what its methods raise leaves the document out."""

    def storing(self, document: PreparedDocument) -> None:
        """Note that a document is about to be stored."""

    def finish(self, document: PreparedDocument) -> None:
        """Note in the document's transaction that it is stored; ClaimLostError takes that back."""

    def refused(self, document: PreparedDocument, error: DatabaseError) -> None:  # noqa: ARG002 -- for those that go on
        """Go on without a document that the database does not take."""
        raise error


_NOBODY: Final = Taker()
#: How the database says that a value is none that it can hold: the next try would end no better.
_REFUSALS: Final = (psycopg.DataError, psycopg.errors.ProgramLimitExceeded)


def encode_and_store(documents: Sequence[PreparedDocument], target: Target, taker: Taker = _NOBODY) -> float:
    """Embed the documents' chunks together, store each document on its own, and return the seconds in the encoder.

    A chunk that the store holds of its document already, word for word, keeps its vector. The taker hears of all of
    them as embedded before anything is stored.
    Raises UnknownConnectionError, with nothing stored, when the connection was deleted meanwhile, and what the taker's
    methods raise, but for ClaimLostError.
    """
    documents = with_kept_enrichment(documents, target.connection.pk)
    vectors = DocumentVectors(
        {_key(document, target): _text(document) for document in documents}, target.index, target.encoder, taker
    )
    vectors.make()
    taker.embedded(1.0)
    for document in documents:
        taker.storing(document)
        try:
            while not _stored(document, target, vectors, taker):
                vectors.make()
        except ClaimLostError:
            continue
        except (DataError, OperationalError) as error:
            if not isinstance(error.__cause__, _REFUSALS):
                raise
            taker.refused(document, error)
    return vectors.seconds


def _stored(document: PreparedDocument, target: Target, vectors: DocumentVectors, taker: Taker) -> bool:
    """Store a document; return False, with nothing stored, when there is an index that it has no vectors for."""
    # A crash may lose the last of them together with their rows' word that they are done: they are taken in again.
    with committed_later():
        _hold(target.connection)
        kept = hold_indexes()
        if not kept <= vectors.indexes:
            return False
        key = _key(document, target)
        chunks = tuple(
            _encoded(chunk, vectors.of(key, place, kept)) for place, chunk in enumerate(document.text.chunks)
        )
        graph = DocumentGraph(document.text.names, tuple(chunk.graph for chunk in document.text.chunks))
        stored = StoredDocument(_row(document, target), chunks, graph)
        store_documents([stored], text_search_config=target.text_search_config, progress=taker.calling)
        taker.finish(document)
    return True


def _key(document: PreparedDocument, target: Target) -> UUID:
    return document_id(target.connection.pk, document.item.external_id)


def _text(document: PreparedDocument) -> DocumentText:
    chunks = (ChunkText(tuple(it.heading_path), it.text, it.context_line) for it in document.drafts)
    return DocumentText(document.text.title, tuple(chunks))


def _encoded(chunk: PreparedChunk, vectors: Mapping[int, Vector]) -> EncodedChunk:
    return EncodedChunk(
        chunk.draft,
        content_hash=chunk.content_hash,
        simhash=chunk.simhash,
        quality=chunk.quality,
        vectors=vectors,
        traits=chunk.traits,
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
        title=document.text.title,
        uri=document.item.uri,
        source_type=connection.source_type or document.text.source_type,
        fingerprint=document.fingerprint,
        version=document.version,
        raw_type=raw_type(document.item),
        byte_size=document.byte_size,
        metadata=dict(document.text.metadata),
        modified_at=modified_at(document, now=target.synced_at),
        synced_at=target.synced_at,
    )
