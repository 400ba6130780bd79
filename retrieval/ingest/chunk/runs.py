"""Runs of neighbouring pieces that become one chunk each, for formats with numbered lines or items."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, takewhile
from typing import Final, TypeAlias

from retrieval.ingest.chunk.merging import Key, Neighbour, merged_with
from retrieval.ingest.chunk.pack import Room, token_cost
from retrieval.ingest.chunk.spans import Piece, Source, is_continued, line_breaks
from retrieval.text.document import ChunkDraft

#: First and last line or item, from 1; None if the format does not number them.
Numbers: TypeAlias = tuple[int, int] | None

#: A run under target / 4 is merged if the result fits the target, one under target / 8 also if it is
#: larger by target / 8.
_SMALL_SHARE: Final = 4
_TINY_SHARE: Final = 8
_MAX_NAMES: Final = 4
_MAX_NAME_CHARACTERS: Final = 80


@dataclass(frozen=True, slots=True)
class Run:
    """The pieces of one chunk and the header that is repeated above them."""

    pieces: tuple[Piece, ...]
    header: Source | None = None

    @property
    def path(self) -> tuple[str, ...]:
        """The names above all of the pieces."""
        paths = [piece.source.block.path for piece in self.pieces]
        shared = takewhile(lambda names: len(set(names)) == 1, zip(*paths, strict=False))
        return tuple(names[0] for names in shared)

    def tokens(self, room: Room) -> int:
        """Return the tokens of the run's chunk."""
        header = len(self.header.starts) + room.separator if self.header else 0
        return header + token_cost(self.pieces, room.separator)

    def within(self, limit: int, room: Room) -> "Run":
        """Return the run, without its header if that would exceed the limit."""
        return self if self.tokens(room) <= limit else Run(self.pieces)


def merged(runs: Iterable[Run], room: Room) -> list[Run]:
    """Return the runs with small ones merged with a neighbour."""
    return merged_with(list(runs), partial(_fitting, room), _together)


def _lines_of(piece: Piece) -> Numbers:
    block = piece.source.block
    if block.row is None:
        return None
    first = block.row + line_breaks(block.text, piece.source.position(piece.first))
    return first, first + piece.text.rstrip().count("\n")


def written(
    runs: Iterable[Run], room: Room, *, numbers: Callable[[Piece], Numbers] = _lines_of
) -> tuple[ChunkDraft, ...]:
    """Return the runs with tokens as chunks; `numbers` returns the first and the last line or item of a piece."""
    full = (run.within(room.limit, room) for run in runs if token_cost(run.pieces, room.separator))
    return tuple(_written(run, ordinal, room, numbers) for ordinal, run in enumerate(full))


def _written(run: Run, ordinal: int, room: Room, numbers: Callable[[Piece], Numbers]) -> ChunkDraft:
    rows = [found for piece in run.pieces if (found := numbers(piece))]
    path = run.path
    below = [piece.source.block.path[len(path)] for piece in run.pieces if len(piece.source.block.path) > len(path)]
    names = list(dict.fromkeys(below))
    joined = ", ".join(names)
    is_short = 0 < len(names) <= _MAX_NAMES and len(joined) <= _MAX_NAME_CHARACTERS
    text = f"{run.header.block.text}\n" if run.header else ""
    text += run.pieces[0].text
    for before, after in pairwise(run.pieces):
        if not is_continued(before, after):
            # A line break, or a blank line where the file has any lines between.
            ends, starts = _lines_of(before), _lines_of(after)
            text += "\n" if ends and starts and starts[0] == ends[1] + 1 else "\n\n"
        text += after.text
    return ChunkDraft(
        ordinal=ordinal,
        text=text.strip("\n").rstrip(),
        heading_path=(*path, joined) if is_short else path,
        token_count=run.tokens(room),
        row_start=min((first for first, _ in rows), default=None),
        row_end=max((last for _, last in rows), default=None),
    )


def _fitting(room: Room, side: Neighbour, small: Run, neighbour: Run) -> Iterator[Key]:
    """Yield the key of an allowed merge with a neighbour: more of the path, then smaller, then earlier wins."""
    size = small.tokens(room)
    if size >= room.target // _SMALL_SHARE:
        return
    is_tiny = size < room.target // _TINY_SHARE
    limit = min(room.limit, room.target + room.target // _TINY_SHARE) if is_tiny else room.target
    pair = _together(neighbour, small) if side is Neighbour.BEFORE else _together(small, neighbour)
    if (tokens := pair.tokens(room)) <= limit:
        yield -len(pair.path), tokens, side


def _together(one: Run, other: Run) -> Run:
    return Run((*one.pieces, *other.pieces), one.header)
