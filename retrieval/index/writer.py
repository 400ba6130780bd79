"""Writing documents to the store, each batch in one transaction, the counts that searches read, and accesses."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Model
from django.db.models.expressions import DatabaseDefault
from django.db.models.sql import InsertQuery
from pgvector import HalfVector
from psycopg import sql

from corecube.models import Connection
from retrieval.engine.types import Vector
from retrieval.graph.document import DocumentGraph
from retrieval.index.citus import is_distributed
from retrieval.index.encodings import remove_encodings
from retrieval.index.graph_writer import count_common, graph_document, remove_graph, write_graph
from retrieval.index.locks import Lock, lock_documents
from retrieval.index.reading import changed, rows
from retrieval.index.scans import create_statement
from retrieval.index.statements import statement
from retrieval.index.store import VectorIndex
from retrieval.models import Document
from retrieval.text.document import ChunkDraft
from retrieval.text.quality import ChunkQuality
from retrieval.text.traits import ChunkTraits

_INSERT_CHUNK: Final = statement("upkeep/insert_chunk")
_INSERT_EMBEDDING: Final = statement("upkeep/insert_embedding")
_FILL_EMBEDDING: Final = statement("upkeep/fill_embedding")
_COPY_VECTORS: Final = statement("upkeep/copy_vectors")
_LACKING_DOCUMENTS: Final = statement("upkeep/lacking_documents")
_COUNT_TERMS: Final = statement("upkeep/count_terms")
_FOLD_TERMS: Final = statement("upkeep/fold_terms")
_OUTBOX: Final = statement("upkeep/outbox")
_OUTBOX_VECTORS: Final = statement("upkeep/outbox_vectors")
_FORGET_ITEMS: Final = statement("upkeep/forget_items")
_MARK_REPEATED: Final = statement("upkeep/mark_repeated")
_ROWS_AT_ONCE: Final = 200  #: Rows that are inserted between two looks whether they are still wanted.
#: Minimum number of documents with the same text for boilerplate; a paragraph copied into a few pages is content.
MIN_REPEATING: Final = 5
#: What repetition takes from the quality: enough to fall below the usual threshold by itself. The same for every
#: count, so that one more copy changes one row and not all of them.
REPEATED_PENALTY: Final = 0.8
#: Columns of a chunk that are stored as its draft has them.
_DRAFT_FIELDS: Final = (
    *("ordinal", "text", "token_count", "page_start", "page_end", "row_start", "row_end"),
    *("section_start", "section_end", "context_line"),
)
#: What an upsert overwrites: everything but the key.
_DOCUMENT_FIELDS: Final = (
    *("connection", "external_id", "title", "uri", "source_type", "fingerprint"),
    *("version", "ingest_version", "raw_type", "byte_size", "metadata", "modified_at", "synced_at"),
)
_RECORD: Final = statement("upkeep/record_accesses")


@dataclass(frozen=True, slots=True)
class EncodedChunk:
    """A chunk with its hashes, quality and vectors, ready to be stored."""

    draft: ChunkDraft
    content_hash: str
    simhash: int
    quality: ChunkQuality
    vectors: Mapping[int, Vector]  #: By embedding index.
    traits: ChunkTraits = field(default_factory=ChunkTraits)


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document row and its chunks, ready to be stored."""

    row: Document
    chunks: tuple[EncodedChunk, ...]
    graph: DocumentGraph | None = None  #: What its texts add to the graph of names; None has them read here.


def store_documents(
    documents: Sequence[StoredDocument], *, text_search_config: str, progress: Callable[[], None] = lambda: None
) -> None:
    """Store documents in one transaction: new ones are added, known ones replaced with all that they own.

    `progress` is called now and then; when it raises, nothing is stored.
    """
    ids = [document.row.pk for document in documents]
    with transaction.atomic(), connection.cursor() as cursor:
        _remove_chunks(cursor, ids)
        Document.objects.bulk_create(
            [document.row for document in documents],
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=_DOCUMENT_FIELDS,
        )
        chunks = [row for document in documents for row in _chunks(document, text_search_config)]
        _insert(cursor, _INSERT_CHUNK, chunks, progress)
        embeddings = [row for document in documents for row in _embeddings(document)]
        _insert(cursor, _INSERT_EMBEDDING, embeddings, progress)
        cursor.execute(_COUNT_TERMS, {"documents": ids, "sign": 1})
        write_graph(
            cursor, [graph_document(it.row, [chunk.draft for chunk in it.chunks], it.graph) for it in documents]
        )
        cursor.execute(_OUTBOX, {"documents": ids, "deleted": False})


def _insert(cursor: Any, statement: str, new: list[dict[str, Any]], progress: Callable[[], None]) -> None:  # noqa: ANN401 -- Django's cursor wrapper has no public type
    for start in range(0, len(new), _ROWS_AT_ONCE):
        progress()
        cursor.executemany(statement, new[start : start + _ROWS_AT_ONCE])


def hold_connection(connection_id: int) -> bool:
    """Keep a connection from being deleted until the transaction ends, and return whether it is there.

    Two of these do not wait for each other; deleting the connection waits for both.
    """
    return bool(rows("SELECT FROM corecube_connection WHERE id = %s FOR KEY SHARE", [connection_id]))


def delete_documents(ids: Sequence[UUID]) -> None:
    """Delete documents with all that they own, in one transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_OUTBOX, {"documents": list(ids), "deleted": True})
        _remove_chunks(cursor, list(ids))
        cursor.execute(_FORGET_ITEMS, {"documents": list(ids)})
        cursor.execute("DELETE FROM retrieval_judgment WHERE document_id = ANY(%s)", [list(ids)])
        cursor.execute("DELETE FROM retrieval_impression WHERE document_id = ANY(%s)", [list(ids)])
        cursor.execute("DELETE FROM retrieval_documentaccess WHERE document_id = ANY(%s)", [list(ids)])
        cursor.execute("DELETE FROM retrieval_document WHERE id = ANY(%s)", [list(ids)])


def fold_term_counts(connection_id: int) -> None:
    """Sum a connection's term counts into one row per lexeme."""
    changed(_FOLD_TERMS, {"connection": connection_id})


def mark_repeated(connection_id: int) -> int:
    """Lower the quality of chunks whose text is in many documents of a connection; return how many changed.

    What is no longer repeated gets its quality back. Other connections do not count: a score may depend only on
    what its reader can see. The read models, which filter by it, are updated.
    """
    parameters = {"connection": connection_id, "minimum": MIN_REPEATING, "penalty": REPEATED_PENALTY}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_MARK_REPEATED, parameters)
        documents = [document for (document,) in cursor.fetchall()]
        cursor.execute(_OUTBOX, {"documents": sorted(set(documents)), "deleted": False})
        return len(documents)


@contextmanager
def committed_later() -> Iterator[None]:
    """Run a transaction that does not wait for the disk, which takes longer than most stages of a search.

    A database server that crashes may lose those of its last second, and nothing else. A coordinator would lose them
    alone, and its shards would not, so on shards it waits.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            if not is_distributed(cursor):
                cursor.execute("SET LOCAL synchronous_commit TO off")
        yield


def add_later(row: Model) -> None:
    """Insert a new row in one round trip, without waiting for the disk; see `committed_later`."""
    query = InsertQuery(type(row))
    query.insert_values(row._meta.local_concrete_fields, [row])  # noqa: SLF001 -- Django's documented way to the fields
    ((inserted, parameters),) = query.get_compiler(connection=connection).as_sql()
    # Statements that are sent together are one transaction.
    changed(f"SELECT set_config('synchronous_commit', 'off', true);\n{inserted}", parameters)


def add_all_later(rows: Sequence[Model], *, timeout_seconds: float) -> None:
    """Insert new rows of one model in one transaction, without waiting for the disk; see `committed_later`.

    What the database sets itself must be unset; nothing else is.
    """
    meta = rows[0]._meta  # noqa: SLF001 -- Django's documented way to the fields
    fields = [it for it in meta.local_concrete_fields if not isinstance(getattr(rows[0], it.attname), DatabaseDefault)]
    names = sql.SQL(", ").join(sql.Identifier(it.column) for it in fields)
    copied = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(meta.db_table), names)
    with committed_later(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{timeout_seconds}s"])
        with cursor.copy(copied) as copy:
            for row in rows:
                copy.write_row([it.get_db_prep_save(getattr(row, it.attname), connection) for it in fields])


def refresh_statistics() -> None:
    """Let the planner know what the tables hold now."""
    changed(
        "ANALYZE retrieval_document, retrieval_chunk, retrieval_embedding, retrieval_termfrequency,"
        " retrieval_documentname, retrieval_chunkmentions, retrieval_commonmention, retrieval_chunklink,"
        " retrieval_sparseembedding, retrieval_tokenembedding, retrieval_sentenceembedding"
    )


def create_vector_index(index: VectorIndex) -> None:
    """Create the HNSW index over one embedding index's vectors unless it is there."""
    changed(create_statement(index.scan, index=index.id, dim=index.dim, scan_dim=index.scan_dim))


def _remove_chunks(cursor: Any, ids: list[UUID]) -> None:  # noqa: ANN401 -- Django's cursor wrapper has no public type
    # Processes that fill an index with the current vectors have ended, or wait and find them changed.
    lock_documents(ids, Lock.UPDATE)
    cursor.execute(_COUNT_TERMS, {"documents": ids, "sign": -1})
    cursor.execute("DELETE FROM retrieval_embedding WHERE document_id = ANY(%s)", [ids])
    cursor.execute("DELETE FROM retrieval_chunk WHERE document_id = ANY(%s)", [ids])
    remove_graph(cursor, ids)
    remove_encodings(cursor, ids)


def _chunks(document: StoredDocument, text_search_config: str) -> list[dict[str, Any]]:
    return [
        {
            "document": document.row.pk,
            **{name: getattr(chunk.draft, name) for name in _DRAFT_FIELDS},
            "connection": document.row.connection_id,
            "heading_path": list(chunk.draft.heading_path),
            "headings": "\n".join(chunk.draft.heading_path),
            "title": document.row.title,
            "content_hash": chunk.content_hash,
            "quality": chunk.quality.value,
            "quality_parts": json.dumps(dict(chunk.quality.parts)),
            "simhash": chunk.simhash,
            "language": chunk.traits.language,
            "hints": list(chunk.traits.hints),
            "minhash": chunk.traits.minhash,
            "questions": list(chunk.draft.questions),
            "asked": "\n".join(chunk.draft.questions),
            "links": json.dumps(chunk.draft.links),
            "triples": None if chunk.draft.triples is None else json.dumps(chunk.draft.triples),
            "config": text_search_config,
        }
        for chunk in document.chunks
    ]


def _embeddings(document: StoredDocument) -> list[dict[str, Any]]:
    return [
        {
            "document": document.row.pk,
            "ordinal": chunk.draft.ordinal,
            "index": index,
            "connection": document.row.connection_id,
            "vector": HalfVector(vector).to_text(),
        }
        for chunk in document.chunks
        for index, vector in chunk.vectors.items()
    ]


@dataclass(frozen=True, slots=True)
class MissingVector:
    """A vector for an index, made when the chunk's document had this fingerprint, and the chunk this context."""

    document_id: UUID
    ordinal: int
    fingerprint: str
    vector: Vector
    context_line: str = ""


def fill_index(index: VectorIndex, vectors: Sequence[MissingVector], *, replaces: bool = False) -> None:
    """Add vectors to an index, in one transaction; those of documents that changed or went meanwhile are left out.

    A chunk that has a vector keeps it unless the new one `replaces` it.
    """
    missing = [
        {
            "index": index.id,
            "document": it.document_id,
            "ordinal": it.ordinal,
            "fingerprint": it.fingerprint,
            "context_line": it.context_line,
            "vector": HalfVector(it.vector).to_text(),
            "replaces": replaces,
        }
        for it in vectors
    ]
    with transaction.atomic(), connection.cursor() as cursor:
        documents = [it.document_id for it in vectors]
        lock_documents(documents, Lock.SHARE)
        cursor.executemany(_FILL_EMBEDDING, missing)
        cursor.execute(_OUTBOX_VECTORS, {"index": index.id, "documents": documents})


def copy_vectors(*, source: int, target: int, documents: Sequence[UUID]) -> int:
    """Give documents the vectors of an index in another one, in one transaction, and return how many were lacking."""
    with transaction.atomic(), connection.cursor() as cursor:
        lock_documents(documents, Lock.SHARE)
        cursor.execute(_COPY_VECTORS, {"source": source, "index": target, "documents": list(documents)})
        count = int(cursor.rowcount)
        cursor.execute(_OUTBOX_VECTORS, {"index": target, "documents": list(documents)})
        return count


def lacking_documents(index: VectorIndex, *, after: UUID, limit: int) -> list[tuple[UUID, int]]:
    """Return the next documents by id, at most `limit`, that lack vectors in an index, with how many they lack."""
    found = rows(_LACKING_DOCUMENTS, {"index": index.id, "after": after, "limit": limit})
    return [(document, count) for document, count in found]


def delete_all_documents(connection: Connection) -> None:
    """Delete every document of a connection, with all that they own."""
    delete_documents(list(Document.objects.filter(connection=connection).values_list("pk", flat=True)))
    fold_term_counts(connection.pk)
    count_common(connection.pk)


@dataclass(frozen=True, slots=True)
class Access:
    """When a document was last read, and how often since that was written last."""

    at: datetime
    times: int


def write_accesses(accesses: Mapping[UUID, Access]) -> None:
    """Add accesses in one transaction; accesses of deleted documents are dropped."""
    if not accesses:
        return
    parameters: dict[str, Any] = {
        "documents": list(accesses),
        "moments": [it.at for it in accesses.values()],
        "times": [it.times for it in accesses.values()],
    }
    with committed_later(), connection.cursor() as cursor:
        lock_documents(accesses, Lock.KEY_SHARE)
        cursor.execute(_RECORD, parameters)
