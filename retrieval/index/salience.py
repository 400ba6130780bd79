"""Giving chunks their salience: at the end of a sync, when the connection's term counts are complete."""

from typing import Final
from uuid import UUID

from django.db import connection, transaction

from retrieval.index.reading import rows
from retrieval.index.statements import statement
from retrieval.text.salience import MAX_DISTINCTIVE, SalienceFacts, salience_of

_WITHOUT: Final = statement("upkeep/without_salience")
_FACTS: Final = statement("upkeep/salience_facts")
_SET: Final = statement("upkeep/set_salience")
_BATCH_CHUNKS: Final = 1000  #: Chunks that are judged together, at least, and documents that are looked at for them.
_BATCH_DOCUMENTS: Final = 200


def fill_salience(connection_id: int) -> int:
    """Give every chunk of a connection that has none its salience, and return how many there were.

    Chunks that have one keep it, though the counts that it came from have changed since.
    """
    filled, after = 0, UUID(int=0)
    while batch := _next(connection_id, after):
        filled += _fill(connection_id, batch)
        after = batch[-1]
    return filled


def _next(connection_id: int, after: UUID) -> list[UUID]:
    """Return the next documents that have a batch's chunks, at least one where there is one."""
    chosen: list[UUID] = []
    chunks = 0
    for document, count in rows(_WITHOUT, {"connection": connection_id, "after": after, "limit": _BATCH_DOCUMENTS}):
        if chunks >= _BATCH_CHUNKS:
            break
        chosen.append(document)
        chunks += count
    return chosen


def _fill(connection_id: int, documents: list[UUID]) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        # Nobody replaces their chunks meanwhile.
        cursor.execute("SELECT FROM retrieval_document WHERE id = ANY(%s) ORDER BY id FOR SHARE", [documents])
        cursor.execute(_FACTS, {"connection": connection_id, "documents": documents, "limit": MAX_DISTINCTIVE})
        found = cursor.fetchall()
        values = [
            salience_of(SalienceFacts(place=place, chunks=chunks, terms=terms, title=title, headings=headings))
            for _, _, place, chunks, terms, title, headings in found
        ]
        parameters = {"documents": [row[0] for row in found], "ordinals": [row[1] for row in found], "values": values}
        cursor.execute(_SET, parameters)
        return int(cursor.rowcount)
