"""The salience of chunks, given at the end of a sync, when the connection's term counts are complete.

It is how well a chunk represents the topic of its document, a weighted mean of four shares, each from 0 to 1:

- terms: the share of the idf of the document's most distinctive terms that the chunk contains. These terms are the 20
  with the highest occurrences x idf; idf = ln(1 + chunks of the connection / chunks that contain the term).
- title: the share of the title's terms that the chunk's text contains.
- headings: the same for the terms of its heading path.
- position: 1 for a document's first chunk, decreasing linearly to 1 / chunks for its last.

A share without terms (no title, no headings, no distinctive terms) is left out of the mean.
"""

from typing import Final
from uuid import UUID

from django.db import connection, transaction

from retrieval.index.locks import Lock, lock_documents
from retrieval.index.reading import rows
from retrieval.index.statements import statement

_WITHOUT: Final = statement("upkeep/without_salience")
_FACTS: Final = statement("upkeep/salience_facts")
_SET: Final = statement("upkeep/set_salience")
_BATCH_CHUNKS: Final = 1000  #: Chunks that are judged together, at least, and documents that are looked at for them.
_BATCH_DOCUMENTS: Final = 200
_MAX_DISTINCTIVE: Final = 20
_WEIGHTS: Final = (0.5, 0.2, 0.15, 0.15)  #: Of terms, position, title and headings.


def salience_of(
    place: int, chunks: int, terms: float | None = None, title: float | None = None, headings: float | None = None
) -> float:
    """Return a chunk's salience, 0 to 1, from its place, from 0, and its shares, None for one without terms."""
    shares = (terms, 1 - place / chunks, title, headings)
    known = [(weight, share) for weight, share in zip(_WEIGHTS, shares, strict=True) if share is not None]
    total = sum(weight * share for weight, share in known)
    return min(1.0, max(0.0, total / sum(weight for weight, _ in known)))


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
        lock_documents(documents, Lock.SHARE)
        cursor.execute(_FACTS, {"connection": connection_id, "documents": documents, "limit": _MAX_DISTINCTIVE})
        found = cursor.fetchall()
        values = [salience_of(*row[2:]) for row in found]
        parameters = {"documents": [row[0] for row in found], "ordinals": [row[1] for row in found], "values": values}
        cursor.execute(_SET, parameters)
        return int(cursor.rowcount)
