"""Chunks along a document's headings."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from retrieval.ingest.chunk.packing import joined, packed
from retrieval.ingest.chunk.pieces import Piece, pieces_of
from retrieval.ingest.types import BlockKind, ChunkDraft, ChunkLimits, ParsedDocument, TokenCounter

#: Headings down to this level open a section; deeper ones are lines of text.
_DEEPEST: Final = 3

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """What stands under one heading path, before the next heading."""

    path: Path
    pieces: tuple[Piece, ...]

    @property
    def tokens(self) -> int:
        """Tokens of the section's text."""
        return sum(piece.tokens for piece in self.pieces)


def heading_chunks(document: ParsedDocument, counter: TokenCounter, limits: ChunkLimits) -> tuple[ChunkDraft, ...]:
    """Return chunks split at H1 to H3, each with its heading path.

    Neighbouring sections under one parent are merged while they fit the target, their own headings kept as
    lines of the text; a section over the target is split, with an overlap between its parts only.
    """
    sections = list(_sections(document, counter, limits))
    drafts: list[ChunkDraft] = []
    for group in _merged(sections, limits.target):
        path = _common([section.path for section in group])
        pieces = group[0].pieces if len(group) == 1 else tuple(_with_headings(group, path, counter))
        for part in packed(pieces, counter, limits):
            tokens = sum(piece.tokens for piece in part)
            drafts.append(ChunkDraft(len(drafts), joined(part), path, tokens, *_pages(part)))
    return tuple(drafts)


def _sections(document: ParsedDocument, counter: TokenCounter, limits: ChunkLimits) -> Iterator[Section]:
    """Yield the document's sections in order; those without text of their own are left to their children's paths."""
    headings: dict[int, str] = {}
    pieces: list[Piece] = []
    for block in document.blocks:
        if block.kind is BlockKind.HEADING and block.level <= _DEEPEST:
            if pieces:
                yield Section(_path(headings), tuple(pieces))
                pieces = []
            headings = {level: text for level, text in headings.items() if level < block.level}
            if block.text.strip() != document.title:
                headings[block.level] = block.text.strip()
        else:
            pieces.extend(pieces_of(block, counter, target=limits.target))
    if pieces:
        yield Section(_path(headings), tuple(pieces))


def _path(headings: dict[int, str]) -> Path:
    return tuple(headings[level] for level in sorted(headings))


def _merged(sections: Iterable[Section], target: int) -> Iterator[list[Section]]:
    """Yield runs of sections that make one chunk: relatives that fit the target together, or one section alone."""
    group: list[Section] = []
    size = 0
    for section in sections:
        if group and not (size + section.tokens <= target and _related(group[0].path, section.path)):
            yield group
            group, size = [], 0
        group.append(section)
        size += section.tokens
    if group:
        yield group


def _related(first: Path, other: Path) -> bool:
    """Return whether two sections are siblings, or the other stands below the first."""
    return first[:-1] == other[:-1] or other[: len(first)] == first


def _common(paths: Sequence[Path]) -> Path:
    """Return the longest path that all of them begin with."""
    first = paths[0]
    length = 0
    while length < len(first) and all(path[: length + 1] == first[: length + 1] for path in paths):
        length += 1
    return first[:length]


def _with_headings(group: Iterable[Section], path: Path, counter: TokenCounter) -> Iterator[Piece]:
    """Yield the pieces of merged sections, each section under the headings that the common path lacks."""
    for section in group:
        if own := section.path[len(path) :]:
            line = " > ".join(own)
            yield Piece(line, len(counter.token_spans(line)))
        yield from section.pieces


def _pages(pieces: Iterable[Piece]) -> tuple[int | None, int | None]:
    pages = [piece.page for piece in pieces if piece.page is not None]
    return min(pages, default=None), max(pages, default=None)
