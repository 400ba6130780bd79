"""Chunks of spreadsheets: sheet by sheet, regions below their titles, large tables split with repeated headers."""

from collections.abc import Iterator

from retrieval.ingest.chunk.by_heading import Section, drafts_of, outline
from retrieval.ingest.chunk.draft import Draft, merge_small, written
from retrieval.ingest.chunk.fitting import sources
from retrieval.ingest.chunk.pack import Room
from retrieval.text.document import ChunkDraft, ParsedDocument, TokenCounter


def chunk_by_table(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return chunks of one sheet each, to which row numbers belong; a table that is split repeats its header."""
    root = outline(sources(document.blocks, counter, room), room)
    # Text above the first sheet is a sheet without a name.
    sheets = [Section(None, root.level, body=root.body)] if root.body else []
    sheets += root.children
    drafts = [draft for sheet in sheets for draft in merge_small(list(_drafts_of_sheet(sheet, room)), room)]
    return written(drafts, room, document.title)


def _drafts_of_sheet(sheet: Section, room: Room) -> Iterator[Draft]:
    path = (sheet.heading,) if sheet.heading else ()
    if sheet.body or sheet.children:
        yield from drafts_of(sheet, path, room)
    else:
        yield Draft((), path)
