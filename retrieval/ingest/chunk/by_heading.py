"""Heading-aware chunks: sections stay complete if possible, small ones are merged, large ones split with overlap."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
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
class Section:
    """A heading with its direct text and the sections below it; the root has no heading."""

    heading: Piece | None
    level: int
    body: list[Source] = field(default_factory=list)
    children: list["Section"] = field(default_factory=list)


def outline(sources: Iterable[Source], room: Room) -> Section:
    """Return the root of the sections that the headings among `sources` make."""
    root = Section(None, 0)
    open_sections = [root]
    max_tokens = min(_MAX_HEADING_TOKENS, room.target // _HEADING_SHARE)
    for source in sources:
        block = source.block
        is_heading = block.kind is BlockKind.HEADING and 1 <= block.level <= _MAX_LEVEL
        if not (is_heading and 0 < len(source.starts) <= max_tokens):
            open_sections[-1].body.append(source)
            continue
        section = Section(whole(source), block.level)
        while open_sections[-1].level >= section.level:
            open_sections.pop()
        open_sections[-1].children.append(section)
        open_sections.append(section)
    return root


def flat(section: Section) -> Iterator[Piece]:
    """Yield the section's text and, under their headings, that of the sections below it."""
    yield from map(whole, section.body)
    for child in section.children:
        if child.heading:
            yield child.heading
        yield from flat(child)


def chunk_by_heading(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return chunks that follow the document's sections (headings of level 1 to 3).

    A section with its subsections is one chunk if it fits the target; otherwise neighbouring subsections are joined
    up to the target, with their headings in the text and their parent's path on the chunk.
    """
    root = outline(sources(document.blocks, counter, room), room)
    return written(merge_small(list(drafts_of(root, (), room)), room), room, document.title)


def drafts_of(section: Section, path: _Path, room: Room) -> Iterator[Draft]:
    """Yield the drafts of a section below the headings of `path`."""
    if len(section.children) == 1 and not section.body:
        yield from _drafts_of_unit(section.children[0], path, room)
    elif _tokens(section, room) <= room.target:
        yield Draft(path, tuple(flat(section)))
    else:
        # The direct text is a section without a heading.
        text = [Section(None, section.level, body=section.body)] if section.body else []
        units = (*text, *section.children)
        for group in filled(units, lambda unit: _tokens(unit, room) + room.separator, room.target):
            if len(group) == 1:
                yield from _drafts_of_unit(group[0], path, room)
            else:
                yield Draft(path, tuple(flat(Section(None, 0, children=group))))


def _drafts_of_unit(unit: Section, path: _Path, room: Room) -> Iterator[Draft]:
    if unit.heading is None:
        pieces = [piece for source in unit.body for piece in fitting_pieces(source, room)]
        for packed in pack(pieces, room, balanced=True):
            yield Draft(path, packed.own, packed.repeated)
    elif unit.body or unit.children:
        yield from drafts_of(unit, (*path, unit.heading), room)
    else:
        yield Draft(path, (unit.heading,))


def _tokens(section: Section, room: Room) -> int:
    heading = section.heading.tokens + room.separator if section.heading else 0
    return heading + token_cost(tuple(flat(section)), room.separator)
