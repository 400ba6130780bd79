"""Chunks of text: by section, of documents, feeds and spreadsheets, and without sections.

Every section begins a chunk; small ones are merged, large ones split with overlap. Without sections paragraphs are
packed, and text without structure is filled to a fixed size with overlap.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count, pairwise
from typing import Final

from retrieval.ingest.chunk.draft import Draft, merge_small, written
from retrieval.ingest.chunk.pack import Room, fitting_pieces, pack, sources
from retrieval.ingest.chunk.spans import Piece, Source, split, tokenised, whole
from retrieval.text.document import BlockKind, ChunkDraft, ParsedDocument, TokenCounter

_MAX_LEVEL: Final = 3  #: Deeper headings stay in the text of their section.
#: A longer "heading" is a paragraph with a heading's style; so is one of more than a fourth of a chunk.
_MAX_HEADING_TOKENS: Final = 64
_HEADING_SHARE: Final = 4
#: A sentence of more than a fourth of the target is split at a word, so that chunks are filled.
_SENTENCE_SHARE: Final = 4


def chunk_by_heading(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return chunks that follow the document's sections: every heading of level 1 to 3 begins a chunk.

    Small sections under one parent are merged, with their headings in the text and in the last part of the path.
    """
    drafts: list[Draft] = []
    for path, body in _sections(sources(document.blocks, counter, room), room):
        pieces = [piece for source in body for piece in fitting_pieces(source, room)]
        drafts += (Draft(path, packed.own, packed.repeated) for packed in pack(pieces, room, balanced=True))
    return written(merge_small(drafts, room), room, document.title)


def chunk_by_item(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return chunks of one item each, even a small one: of a feed's entry or a workbook's sheet.

    Items start at headings of the top level. A sheet's row numbers mean nothing beside those of another sheet.
    """
    ordinals = count()
    blocks = document.blocks
    top = min((block.level for block in blocks if block.kind is BlockKind.HEADING), default=0)
    starts = [place for place, block in enumerate(blocks) if block.kind is BlockKind.HEADING and block.level == top]
    bounds = pairwise((0, *starts, len(blocks)))
    items = (replace(document, blocks=blocks[begin:end]) for begin, end in bounds if begin < end)
    drafts = (draft for item in items for draft in chunk_by_heading(item, counter, room))
    return tuple(replace(draft, ordinal=next(ordinals)) for draft in drafts)


def chunk_by_paragraph(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return neighbouring paragraphs packed to the target, with their pages."""
    pieces = [piece for source in sources(document.blocks, counter, room) for piece in fitting_pieces(source, room)]
    return _packed(document, pieces, room, balanced=True)


def chunk_text(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return chunks of plain text: by section, or filled to the target and split near it at a sentence or line."""
    if any(block.kind is BlockKind.HEADING for block in document.blocks):
        return chunk_by_heading(document, counter, room)
    max_length = max(1, room.target // _SENTENCE_SHARE)
    pieces = [piece for block in document.blocks for piece in split(tokenised(block, counter), max_length)]
    return _packed(document, pieces, room, balanced=False)


def _packed(document: ParsedDocument, pieces: list[Piece], room: Room, *, balanced: bool) -> tuple[ChunkDraft, ...]:
    drafts = [Draft((), packed.own, packed.repeated) for packed in pack(pieces, room, balanced=balanced)]
    return written(merge_small(drafts, room), room, document.title)


def _sections(sources: Iterable[Source], room: Room) -> Iterator[tuple[tuple[Piece, ...], list[Source]]]:
    """Yield each section's headings and direct text; a heading without text below it is text of its parent."""
    max_tokens = min(_MAX_HEADING_TOKENS, room.target // _HEADING_SHARE)
    path: tuple[Source, ...] = ()
    body: list[Source] = []
    for source in sources:
        block = source.block
        is_heading = block.kind is BlockKind.HEADING and 1 <= block.level <= _MAX_LEVEL
        if not (is_heading and 0 < len(source.starts) <= max_tokens):
            body += [source] if source.starts else []
            continue
        above = tuple(heading for heading in path if heading.block.level < block.level)
        if body or above != path:
            yield _section(path, body)
        path, body = (*above, source), []
    yield _section(path, body)


def _section(path: tuple[Source, ...], body: list[Source]) -> tuple[tuple[Piece, ...], list[Source]]:
    headings = tuple(map(whole, path))
    return (headings, body) if body else (headings[:-1], list(path[-1:]))
