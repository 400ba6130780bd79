"""Citation lines: the place of a chunk in its document. Pure."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from retrieval.engine.types import ChunkFacts, Ranking
from retrieval.text.document import row_unit

_SEPARATOR: Final = " | "
_NOTHING: Final = "n/a"
_SPANS: Final = {"row": "Rows", "record": "Items", "line": "Lines"}


def citations(hits: Ranking) -> tuple[str, ...]:
    """Return a line for each hit; with the document's id where documents share a title."""
    documents = defaultdict(set)
    for hit in hits:
        documents[_plain(hit.chunk.title)].add(hit.chunk_id.document_id)
    return tuple(
        citation(
            hit.chunk, document=f"{hit.chunk_id.document_id}" if len(documents[_plain(hit.chunk.title)]) > 1 else ""
        )
        for hit in hits
    )


def citation(chunk: ChunkFacts, *, document: str = "") -> str:
    """Return "Doc: Travel policy | Page: 3-4 | Section: Rail > Seats | Rows: 12-40", with "Id: …" for `document`.

    Document, page and section are always present, as "n/a" without a value; rows, items or lines only where the source
    counts them.
    """
    return _SEPARATOR.join(f"{name}: {value}" for name, value in _parts(chunk, document))


def _parts(chunk: ChunkFacts, document: str) -> Iterator[tuple[str, str]]:
    yield "Doc", _plain(chunk.title) or _NOTHING
    if document:
        yield "Id", document
    yield "Page", _span(chunk.page_start, chunk.page_end) or _NOTHING
    yield "Section", " > ".join(map(_plain, chunk.heading_path)) or _NOTHING
    if rows := _span(chunk.row_start, chunk.row_end):
        yield _SPANS[row_unit(chunk.source_type)], rows


def _span(first: int | None, last: int | None) -> str:
    if first is None:
        return ""
    return f"{first}" if last in {None, first} else f"{first}-{last}"


def _plain(text: str) -> str:
    return " ".join(text.replace("|", "/").split())
