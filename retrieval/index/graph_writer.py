"""Keeping the graph of names: what documents are called and what their texts may speak of."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from retrieval.engine.types import ChunkId
from retrieval.graph.addresses import Place
from retrieval.graph.document import ChunkWords, DocumentGraph, DocumentWords, GraphDocument, graph_of
from retrieval.graph.names import QUALITY, NameKind
from retrieval.graph.spans import number_of
from retrieval.graph.stated import Stated, stated_by_triples
from retrieval.index.statements import statement
from retrieval.models import Document
from retrieval.text.document import ChunkDraft

_INSERT_NAME: Final = statement("upkeep/insert_name")
_INSERT_MENTIONS: Final = statement("upkeep/insert_mentions")
_INSERT_LINK: Final = statement("upkeep/insert_link")
_DELETE_TRIPLES: Final = (
    "DELETE FROM retrieval_chunklink WHERE document_id = %(document)s AND ordinal = %(ordinal)s AND kind = 'triple'"
)
_TEXTS: Final = statement("upkeep/graph_texts")
_WITHOUT: Final = statement("upkeep/without_mentions")
_STATUS: Final = statement("upkeep/graph_status")
_BATCH_DOCUMENTS: Final = 200
_FIRST: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class GraphStatus:
    """How much of a connection is in the graph."""

    chunks: int
    #: Chunks that were read for names.
    read: int
    names: int
    keys: int
    #: Ends of the links that its chunks state.
    stated: int


def write_graph(cursor: Any, documents: Sequence[GraphDocument]) -> None:  # noqa: ANN401 -- Django's cursor wrapper has no public type
    """Add the names and mentions of documents that have none, in the caller's transaction."""
    cursor.executemany(_INSERT_NAME, [row for document in documents for row in _names(document)])
    cursor.executemany(_INSERT_MENTIONS, [row for document in documents for row in _mentions(document)])
    cursor.executemany(_INSERT_LINK, [row for document in documents for row in _links(document)])


def graph_document(row: Document, drafts: Sequence[ChunkDraft], graph: DocumentGraph | None) -> GraphDocument:
    """Return a document's part of the graph, read from its texts where it is None, with what it belongs to."""
    place = Place(row.connection_id, row.external_id, row.uri)
    if graph is None:
        words = tuple(ChunkWords(it.ordinal, it.text, tuple(it.heading_path), it.links) for it in drafts)
        graph = graph_of(DocumentWords(row.title, row.source_type, dict(row.metadata), words, place))
    return GraphDocument(row.pk, place, graph, tuple((it.ordinal, it.triples or ()) for it in drafts))


def remove_graph(cursor: Any, ids: Sequence[UUID]) -> None:  # noqa: ANN401 -- as above
    """Forget the names and mentions of documents, in the caller's transaction."""
    cursor.execute("DELETE FROM retrieval_documentname WHERE document_id = ANY(%s)", [list(ids)])
    cursor.execute("DELETE FROM retrieval_chunkmentions WHERE document_id = ANY(%s)", [list(ids)])
    cursor.execute("DELETE FROM retrieval_chunklink WHERE document_id = ANY(%s)", [list(ids)])


def rewrite_triples(
    cursor: Any,  # noqa: ANN401 -- as above
    chunk: ChunkId,
    connection_id: int,
    triples: Sequence[Sequence[str]],
) -> None:
    """Replace the links that a model read in a chunk, in the caller's transaction, which has locked its document."""
    cursor.execute(_DELETE_TRIPLES, {"document": chunk.document_id, "ordinal": chunk.ordinal})
    cursor.executemany(_INSERT_LINK, _rows(chunk, connection_id, stated_by_triples(triples)))


def fill_graph(connection_id: int) -> int:
    """Read every document of a connection that was not read for names yet, and return how many there were.

    Syncs write the graph with the documents; this is for those that were stored before there was one. Common keys are
    to be counted behind it.
    """
    filled, after = 0, _FIRST
    while batch := _next(connection_id, after):
        _rewrite(batch)
        filled += len(batch)
        after = batch[-1]
    return filled


def forget_graph(connection_id: int) -> None:
    """Forget the graph of a connection; `fill_graph` makes it anew."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM retrieval_documentname WHERE connection_id = %s", [connection_id])
        cursor.execute("DELETE FROM retrieval_chunkmentions WHERE connection_id = %s", [connection_id])
        cursor.execute("DELETE FROM retrieval_chunklink WHERE connection_id = %s", [connection_id])
        cursor.execute("DELETE FROM retrieval_commonmention WHERE connection_id = %s", [connection_id])


def graph_status(connection_id: int) -> GraphStatus:
    """Return how much of a connection is in the graph."""
    with connection.cursor() as cursor:
        cursor.execute(_STATUS, {"connection": connection_id})
        return GraphStatus(*map(int, cursor.fetchone()))


def _next(connection_id: int, after: UUID) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(_WITHOUT, {"connection": connection_id, "after": after, "limit": _BATCH_DOCUMENTS})
        return [document for (document,) in cursor.fetchall()]


def _rewrite(ids: Sequence[UUID]) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        # Nobody replaces their chunks meanwhile.
        cursor.execute("SELECT FROM retrieval_document WHERE id = ANY(%s) ORDER BY id FOR UPDATE", [list(ids)])
        remove_graph(cursor, ids)
        write_graph(cursor, _read(cursor, ids))


def _read(cursor: Any, ids: Sequence[UUID]) -> list[GraphDocument]:  # noqa: ANN401 -- as above
    cursor.execute(_TEXTS, {"documents": list(ids)})
    documents = []
    for (identity, source, title, source_type, external_id, uri), rows in groupby(
        cursor.fetchall(), key=lambda row: (row[0], row[1], row[2], row[4], row[9], row[10])
    ):
        chunk_rows = list(rows)
        place = Place(source, external_id, uri)
        chunks = tuple(
            ChunkWords(row[5], row[6], tuple(row[7]), _json(row[8]) or [], _json(row[11]) or []) for row in chunk_rows
        )
        words = DocumentWords(title, source_type, _json(chunk_rows[0][3]) or {}, chunks, place)
        triples = tuple((chunk.ordinal, chunk.triples) for chunk in chunks)
        documents.append(GraphDocument(identity, place, graph_of(words), triples))
    return documents


def _json(value: Any) -> Any:  # noqa: ANN401 -- the driver returns JSON as text or parsed
    return json.loads(value) if isinstance(value, str) else value


def _names(document: GraphDocument) -> list[dict[str, Any]]:
    names = [(name.key, name.text, name.kind) for name in document.graph.names]
    addresses = [(address, address, NameKind.ADDRESS) for address in document.place.addresses]
    return [
        {
            "document": document.id,
            "key": number_of(key),
            "connection": document.place.connection_id,
            "name": text,
            "kind": kind.value,
            "quality": QUALITY[kind],
        }
        for key, text, kind in (*names, *addresses)
    ]


def _links(document: GraphDocument) -> list[dict[str, Any]]:
    rows = []
    for (ordinal, triples), chunk in zip(document.chunks, document.graph.chunks, strict=True):
        stated = (*chunk.stated, *stated_by_triples(triples))
        rows += _rows(ChunkId(document.id, ordinal), document.place.connection_id, stated)
    return rows


def _rows(chunk: ChunkId, connection_id: int, stated: Sequence[Stated]) -> list[dict[str, Any]]:
    return [
        {
            "document": chunk.document_id,
            "ordinal": chunk.ordinal,
            "connection": connection_id,
            "kind": it.kind.value,
            "key": it.key,
            "name": it.name,
            "sentence": it.sentence,
        }
        for it in stated
    ]


def _mentions(document: GraphDocument) -> list[dict[str, Any]]:
    return [
        {
            "document": document.id,
            "ordinal": ordinal,
            "connection": document.place.connection_id,
            "keys": list(chunk.mentions.keys),
            "phrases": chunk.mentions.phrases,
        }
        for (ordinal, _), chunk in zip(document.chunks, document.graph.chunks, strict=True)
    ]
