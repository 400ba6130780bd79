"""Chunks by section, of documents, feeds and spreadsheets.

Sections stay complete if possible, small ones are merged, large ones split with overlap.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import Final

from retrieval.ingest.chunk.draft import Draft, merge_small, written
from retrieval.ingest.chunk.fitting import fitting_pieces, sources
from retrieval.ingest.chunk.merging import filled
from retrieval.ingest.chunk.pack import Room, pack, token_cost
from retrieval.ingest.chunk.spans import Piece, Source, whole
from retrieval.text.document import BlockKind, ChunkDraft, ParsedDocument, TokenCounter

_MAX_LEVEL: Final = 3  #: Deeper headings stay in the text of their section.
#: A longer "heading" is a paragraph with a heading's style; so is one of more than a fourth of a chunk.
_MAX_HEADING_TOKENS: Final = 64
_HEADING_SHARE: Final = 4
_Path = tuple[Piece, ...]


@dataclass(slots=True, eq=False)
class _Section:
    """A heading with its direct text and the sections below it; the root has no heading."""

    heading: Piece | None
    level: int
    body: list[Source] = field(default_factory=list)
    children: list["_Section"] = field(default_factory=list)


def _outline(sources: Iterable[Source], room: Room) -> _Section:
    root = _Section(None, 0)
    open_sections = [root]
    max_tokens = min(_MAX_HEADING_TOKENS, room.target // _HEADING_SHARE)
    for source in sources:
        block = source.block
        is_heading = block.kind is BlockKind.HEADING and 1 <= block.level <= _MAX_LEVEL
        if not (is_heading and 0 < len(source.starts) <= max_tokens):
            open_sections[-1].body.append(source)
            continue
        section = _Section(whole(source), block.level)
        while open_sections[-1].level >= section.level:
            open_sections.pop()
        open_sections[-1].children.append(section)
        open_sections.append(section)
    return root


def _flat(section: _Section) -> Iterator[Piece]:
    yield from map(whole, section.body)
    for child in section.children:
        if child.heading:
            yield child.heading
        yield from _flat(child)


def chunk_by_heading(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return chunks that follow the document's sections (headings of level 1 to 3).

    A section with its subsections is one chunk if it fits the target; otherwise neighbouring subsections are joined
    up to the target, with their headings in the text and their parent's path on the chunk.
    """
    root = _outline(sources(document.blocks, counter, room), room)
    return written(merge_small(list(_drafts_of(root, (), room)), room), room, document.title)


def chunk_by_item(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return the chunks of a feed: each item separate, even a small one. Items start at headings of the top level."""
    ordinals = count()
    blocks = document.blocks
    top = min((block.level for block in blocks if block.kind is BlockKind.HEADING), default=0)
    starts = [place for place, block in enumerate(blocks) if block.kind is BlockKind.HEADING and block.level == top]
    bounds = pairwise((0, *starts, len(blocks)))
    items = (replace(document, blocks=blocks[begin:end]) for begin, end in bounds if begin < end)
    drafts = (draft for item in items for draft in chunk_by_heading(item, counter, room))
    return tuple(replace(draft, ordinal=next(ordinals)) for draft in drafts)


def chunk_by_table(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return chunks of one sheet each, to which row numbers belong; a table that is split repeats its header."""
    root = _outline(sources(document.blocks, counter, room), room)
    # Text above the first sheet is a sheet without a name.
    sheets = [_Section(None, root.level, body=root.body)] if root.body else []
    drafts: list[Draft] = []
    for sheet in (*sheets, *root.children):
        path = (sheet.heading,) if sheet.heading else ()
        has_content = sheet.body or sheet.children
        drafts += merge_small(list(_drafts_of(sheet, path, room)) if has_content else [Draft((), path)], room)
    return written(drafts, room, document.title)


def _drafts_of(section: _Section, path: _Path, room: Room) -> Iterator[Draft]:
    if len(section.children) == 1 and not section.body:
        yield from _drafts_of_unit(section.children[0], path, room)
    elif _tokens(section, room) <= room.target:
        yield Draft(path, tuple(_flat(section)))
    else:
        # The direct text is a section without a heading.
        text = [_Section(None, section.level, body=section.body)] if section.body else []
        units = (*text, *section.children)
        for group in filled(units, lambda unit: _tokens(unit, room) + room.separator, room.target):
            if len(group) == 1:
                yield from _drafts_of_unit(group[0], path, room)
            else:
                yield Draft(path, tuple(_flat(_Section(None, 0, children=group))))


def _drafts_of_unit(unit: _Section, path: _Path, room: Room) -> Iterator[Draft]:
    if unit.heading is None:
        pieces = [piece for source in unit.body for piece in fitting_pieces(source, room)]
        for packed in pack(pieces, room, balanced=True):
            yield Draft(path, packed.own, packed.repeated)
    elif unit.body or unit.children:
        yield from _drafts_of(unit, (*path, unit.heading), room)
    else:
        yield Draft(path, (unit.heading,))


def _tokens(section: _Section, room: Room) -> int:
    heading = section.heading.tokens + room.separator if section.heading else 0
    return heading + token_cost(tuple(_flat(section)), room.separator)
