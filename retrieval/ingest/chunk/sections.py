"""The outline of a document: sections under headings of level 1 to 3."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from retrieval.ingest.chunk.pack import Room
from retrieval.ingest.chunk.spans import Piece, Source, whole
from retrieval.text.document import BlockKind

#: Deeper headings stay in the text of their section.
_MAX_LEVEL: Final = 3
#: A longer "heading" is a paragraph with a heading's style; so is one of more than a fourth of a chunk.
_MAX_HEADING_TOKENS: Final = 64
_HEADING_SHARE: Final = 4


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
