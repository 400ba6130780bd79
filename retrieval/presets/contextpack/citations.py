"""Citation lines: the place of a chunk in its document. Pure."""

from collections import defaultdict
from typing import Final

from retrieval.engine.types import ChunkFacts, Ranking
from retrieval.text.document import row_unit

_NOTHING: Final = "n/a"
_SPANS: Final = {"row": "Rows", "record": "Items", "line": "Lines"}


def citations(hits: Ranking) -> tuple[str, ...]:
    """Return a line for each hit; with the document's id where documents share a title."""
    documents = defaultdict(set)
    for hit in hits:
        documents[_plain(hit.chunk.title)].add(hit.chunk_id.document_id)
    shared = {title for title, ids in documents.items() if len(ids) > 1}
    return tuple(
        citation(hit.chunk, document=str(hit.chunk_id.document_id) if _plain(hit.chunk.title) in shared else "")
        for hit in hits
    )


def citation(chunk: ChunkFacts, *, document: str = "") -> str:
    """Return "Doc: Travel policy | Page: 3-4 | Section: Rail > Seats | Rows: 12-40", with "Id: …" for `document`.

    Document, page and section are always present, as "n/a" without a value; rows, items or lines only where the source
    counts them.
    """
    parts = {"Doc": _plain(chunk.title) or _NOTHING}
    if document:
        parts["Id"] = document
    parts["Page"] = _span(chunk.page_start, chunk.page_end) or _NOTHING
    parts["Section"] = " > ".join(map(_plain, chunk.heading_path)) or _NOTHING
    if rows := _span(chunk.row_start, chunk.row_end):
        parts[_SPANS[row_unit(chunk.source_type)]] = rows
    return " | ".join(f"{name}: {value}" for name, value in parts.items())


def _span(first: int | None, last: int | None) -> str:
    if first is None:
        return ""
    return f"{first}" if last in {None, first} else f"{first}-{last}"


def _plain(text: str) -> str:
    return " ".join(text.replace("|", "/").split())
