"""Keeping the graph of names: what documents are called, what their texts may speak of, and which keys are common."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Sum
from django.db.models.functions import Abs

from retrieval.engine.types import ChunkId
from retrieval.graph.addresses import Place
from retrieval.graph.document import ChunkWords, DocumentGraph, DocumentWords, GraphDocument, graph_of
from retrieval.graph.links import Stated, stated_by_triples
from retrieval.graph.names import QUALITY, NameKind
from retrieval.graph.spans import number_of
from retrieval.index.locks import Lock, lock_documents
from retrieval.index.reading import changed, rows
from retrieval.index.statements import statement
from retrieval.models import Document, MentionCount, TermFrequency
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
_TABLES: Final = ("retrieval_documentname", "retrieval_chunkmentions", "retrieval_chunklink")
_BATCH_DOCUMENTS: Final = 200
_COUNT_COMMON: Final = statement("upkeep/count_common_mentions")
#: Chunks of a connection from which on a key is counted as common: below it the sum over a scope rarely matters.
_MIN_COMMON: Final = 200
#: Share of added and deleted chunks of a connection, in percent, after which its keys are counted again.
_DUE_PERCENT: Final = 5


@dataclass(frozen=True, slots=True)
class GraphStatus:
    """How much of a connection is in the graph."""

    chunks: int
    read: int  #: Chunks that were read for names.
    names: int
    keys: int
    stated: int  #: Ends of the links that its chunks state.


def write_graph(cursor: Any, documents: Sequence[GraphDocument]) -> None:  # noqa: ANN401 -- Django's cursor wrapper has no public type
    """Add the names and mentions of documents that have none, in the caller's transaction."""
    cursor.executemany(_INSERT_NAME, [row for document in documents for row in _names(document)])
    cursor.executemany(_INSERT_MENTIONS, [row for document in documents for row in _mentions(document)])
    links: list[dict[str, Any]] = []
    for document in documents:
        for (ordinal, triples), chunk in zip(document.chunks, document.graph.chunks, strict=True):
            stated = (*chunk.stated, *stated_by_triples(triples))
            links += _links(ChunkId(document.id, ordinal), document.place.connection_id, stated)
    cursor.executemany(_INSERT_LINK, links)


def graph_document(row: Document, drafts: Sequence[ChunkDraft], graph: DocumentGraph | None) -> GraphDocument:
    """Return a document's part of the graph, read from its texts where it is None, with what it belongs to."""
    place = Place(row.connection_id, row.external_id, row.uri)
    if graph is None:
        words = tuple(ChunkWords(it.ordinal, it.text, tuple(it.heading_path), it.links) for it in drafts)
        graph = graph_of(DocumentWords(row.title, row.source_type, dict(row.metadata), words, place))
    return GraphDocument(row.pk, place, graph, tuple((it.ordinal, it.triples or ()) for it in drafts))


def remove_graph(cursor: Any, ids: Sequence[UUID]) -> None:  # noqa: ANN401 -- as above
    """Forget the names and mentions of documents, in the caller's transaction."""
    for table in _TABLES:
        cursor.execute("DELETE FROM {table} WHERE document_id = ANY(%s)".replace("{table}", table), [list(ids)])


def rewrite_triples(
    cursor: Any,  # noqa: ANN401 -- as above
    chunk: ChunkId,
    connection_id: int,
    triples: Sequence[Sequence[str]],
) -> None:
    """Replace the links that a model read in a chunk, in the caller's transaction, which has locked its document."""
    cursor.execute(_DELETE_TRIPLES, {"document": chunk.document_id, "ordinal": chunk.ordinal})
    cursor.executemany(_INSERT_LINK, _links(chunk, connection_id, stated_by_triples(triples)))


def fill_graph(connection_id: int) -> int:
    """Read every document of a connection that was not read for names yet, and return how many there were.

    Syncs write the graph with the documents; this is for those that were stored before there was one. Common keys are
    to be counted behind it.
    """
    filled, after = 0, UUID(int=0)
    while found := rows(_WITHOUT, {"connection": connection_id, "after": after, "limit": _BATCH_DOCUMENTS}):
        batch = [document for (document,) in found]
        with transaction.atomic(), connection.cursor() as cursor:
            # Nobody replaces their chunks meanwhile.
            lock_documents(batch, Lock.UPDATE)
            remove_graph(cursor, batch)
            write_graph(cursor, _read(cursor, batch))
        filled += len(batch)
        after = batch[-1]
    return filled


def forget_graph(connection_id: int) -> None:
    """Forget the graph of a connection; `fill_graph` makes it again."""
    with transaction.atomic(), connection.cursor() as cursor:
        for table in (*_TABLES, "retrieval_commonmention"):
            cursor.execute("DELETE FROM {table} WHERE connection_id = %s".replace("{table}", table), [connection_id])


def graph_status(connection_id: int) -> GraphStatus:
    """Return how much of a connection is in the graph."""
    (counts,) = rows(_STATUS, {"connection": connection_id})
    return GraphStatus(*map(int, counts))


def _read(cursor: Any, ids: Sequence[UUID]) -> list[GraphDocument]:  # noqa: ANN401 -- as above
    cursor.execute(_TEXTS, {"documents": list(ids)})
    documents = []
    for (identity, source, title, source_type, external_id, uri), group in groupby(
        cursor.fetchall(), key=lambda row: (row[0], row[1], row[2], row[4], row[9], row[10])
    ):
        chunk_rows = list(group)
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
    names = ((name.key, name.text, name.kind) for name in document.graph.names)
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


def _links(chunk: ChunkId, connection_id: int, stated: Sequence[Stated]) -> list[dict[str, Any]]:
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


def count_common(connection_id: int) -> None:
    """Count the chunks of a connection per key again, for keys of many chunks."""
    changed(_COUNT_COMMON, {"connection": connection_id, "minimum": _MIN_COMMON})
    chunks, _ = _moved(connection_id)
    MentionCount.objects.update_or_create(connection_id=connection_id, defaults={"chunks": chunks, "changed": 0})


def note_changes(connection_id: int) -> None:
    """Note how many chunks of a connection came or went; to be called before its term counts are folded."""
    known, _ = MentionCount.objects.get_or_create(connection_id=connection_id)
    chunks, moved = _moved(connection_id)
    # What was folded before is one addition among the others.
    known.changed += max(0, moved - known.chunks)
    known.chunks = chunks
    known.save()


def count_common_when_due(connection_id: int) -> None:
    """Count as `count_common` does where 5 % of the connection's chunks came or went since that was done."""
    known = MentionCount.objects.filter(connection_id=connection_id).first()
    if known is not None and known.changed and known.changed * 100 >= known.chunks * _DUE_PERCENT:
        count_common(connection_id)


def _moved(connection_id: int) -> tuple[int, int]:
    """Return a connection's chunks, and those that came and those that went together, by its unfolded additions."""
    counted = TermFrequency.objects.filter(connection_id=connection_id, lexeme="")
    sums = counted.aggregate(total=Sum("chunks", default=0), moved=Sum(Abs("chunks"), default=0))
    return sums["total"], sums["moved"]
