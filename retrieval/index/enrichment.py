"""Storing what a model wrote for chunks, with their new vectors and term counts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection, transaction
from pgvector import HalfVector

from corecube.models import Connection
from retrieval.engine.types import ChunkId, Vector
from retrieval.index.embedding_index import hold_indexes
from retrieval.index.graph_writer import rewrite_triples
from retrieval.index.locks import Lock, lock_documents
from retrieval.index.statements import statement
from retrieval.models import Chunk

_COUNT_TERMS: Final = statement("upkeep/count_terms")
_ENRICH_CHUNK: Final = statement("upkeep/enrich_chunk")
_OUTBOX: Final = statement("upkeep/outbox")
_REPLACE_VECTOR: Final = (
    "UPDATE retrieval_embedding SET vector = %(vector)s"
    " WHERE document_id = %(document)s AND ordinal = %(ordinal)s AND index_id = %(index)s"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrichedChunk:
    """A stored chunk and what was written for it."""

    row: Chunk  #: As read, with its document; a chunk with another text, title or headings by now is left alone.
    context_line: str = ""
    questions: tuple[str, ...] = ()
    triples: tuple[tuple[str, str, str], ...] | None = None  #: Subject, relation, object; None if not requested.
    #: Of the text under its new context line, by index; none where that did not change.
    vectors: Mapping[int, Vector] = field(default_factory=dict)


def store_enrichment(
    chunks: Sequence[EnrichedChunk],
    *,
    connection_id: int,
    text_search_config: str,
    indexes: frozenset[int] | None = None,
) -> int | None:
    """Store what was written, in one transaction, and return for how many chunks; 0 when the connection is gone.

    None, with nothing stored, when there is an embedding index that is not among `indexes`, those that the vectors
    were made for; None for those means that no vector changes.
    """
    ids = sorted({chunk.row.document_id for chunk in chunks})
    stored = 0
    with transaction.atomic(), connection.cursor() as cursor:
        # No sync stores documents of the connection meanwhile, so that the counts stay those of the search vectors.
        if Connection.objects.select_for_update().filter(pk=connection_id).first() is None:
            return 0
        if indexes is not None and not hold_indexes() <= indexes:
            return None
        # Processes that fill an index with these documents' vectors have ended, or wait and find them changed.
        lock_documents(ids, Lock.UPDATE)
        cursor.execute(_COUNT_TERMS, {"documents": ids, "sign": -1})
        for chunk in chunks:
            stored += _store(cursor, chunk, connection_id, text_search_config)
        cursor.execute(_COUNT_TERMS, {"documents": ids, "sign": 1})
        if stored:
            cursor.execute(_OUTBOX, {"documents": ids, "deleted": False})
    return stored


def _store(
    cursor: Any,  # noqa: ANN401 -- Django's cursor wrapper has no public type
    chunk: EnrichedChunk,
    connection_id: int,
    text_search_config: str,
) -> int:
    """Store one chunk's enrichment; return 1, or 0 if the chunk's text has changed."""
    row = chunk.row
    key = {"document": row.document_id, "ordinal": row.ordinal}
    written = {
        "content_hash": row.content_hash,
        "title": row.document.title,
        "heading_path": list(row.heading_path),
        "context_line": chunk.context_line,
        "questions": list(chunk.questions),
        "asked": "\n".join(chunk.questions),
        "triples": None if chunk.triples is None else json.dumps(chunk.triples),
        "config": text_search_config,
    }
    cursor.execute(_ENRICH_CHUNK, key | written)
    if not cursor.rowcount:
        return 0
    rewrite_triples(cursor, ChunkId(row.document_id, row.ordinal), connection_id, chunk.triples or ())
    for index, vector in chunk.vectors.items():
        cursor.execute(_REPLACE_VECTOR, key | {"vector": HalfVector(vector).to_text(), "index": index})
    return 1
