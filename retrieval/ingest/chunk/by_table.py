"""Chunks of spreadsheets: sheet by sheet, regions below their titles, large tables cut with their header."""

from collections.abc import Iterator

from retrieval.ingest.chunk.by_heading import drafts_of
from retrieval.ingest.chunk.draft import Draft, settled, written
from retrieval.ingest.chunk.fitting import sources
from retrieval.ingest.chunk.pack import Room
from retrieval.ingest.chunk.sections import Section, outline
from retrieval.text.document import ChunkDraft, ParsedDocument, TokenCounter


def chunk_by_table(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return chunks of which each stands on one sheet, its name first in the heading path.

    Row numbers therefore belong to that sheet. Within a sheet small regions stand together; a
    table is whole when it fits, and repeats its header when it is cut.
    """
    root = outline(sources(document.blocks, counter, room), room)
    drafts = [draft for sheet in _sheets(root) for draft in settled(list(_drafts_of_sheet(sheet, room)), room)]
    return written(drafts, room, document.title)


def _sheets(root: Section) -> Iterator[Section]:
    """Yield the sections of the sheets, and before them what stands above the first."""
    if root.body:
        yield Section(None, root.level, body=root.body)
    yield from root.children


def _drafts_of_sheet(sheet: Section, room: Room) -> Iterator[Draft]:
    path = (sheet.heading,) if sheet.heading else ()
    if sheet.body or sheet.children:
        yield from drafts_of(sheet, path, room)
    else:
        yield Draft((), path)
