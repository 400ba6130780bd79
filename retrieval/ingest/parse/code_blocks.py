"""The lines of a file of code, and the blocks that are cut from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from retrieval.text.document import Block, BlockKind

#: Statements that follow one another are one block up to here (about 200 tokens).
MAX_RUN_CHARACTERS: Final = 800
#: A longer function or statement is opened, so that it can be cut between the statements in it.
MAX_UNIT_CHARACTERS: Final = 1_600
#: Deeper definitions are text of the one around them.
MAX_DEPTH: Final = 16
_MAX_OPENING_CHARACTERS: Final = 200
_ELISION: Final = "…"


@dataclass(frozen=True, slots=True)
class Scope:
    """What encloses lines: its names, and the lines that opened it."""

    names: tuple[str, ...] = ()
    #: Each with the line (from 0) that it stands on.
    openings: tuple[tuple[int, str], ...] = ()

    def header(self, first: int, line: str) -> str:
        """Return what opened the scope above line `first`, and a mark for what lies between, indented as `line` is."""
        above = [text for row, text in self.openings if row < first]
        indentation = line[: len(line) - len(line.lstrip())]
        return "\n".join((*above, indentation + _ELISION)) if above else ""


class CodeBlocks:
    """The lines of one file and its blocks so far."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.found: list[Block] = []
        #: Characters before each line.
        self._offsets = [0, *accumulate(len(line) + 1 for line in lines)]

    def add(self, first: int, end: int, scope: Scope) -> None:
        """Add the lines from `first` to before `end` as a block, without the blank ones around them."""
        while first < end and not self.lines[first].strip():
            first += 1
        while first < end and not self.lines[end - 1].strip():
            end -= 1
        if first < end:
            text = "\n".join(self.lines[first:end]).rstrip()
            header = scope.header(first, self.lines[first])
            self.found.append(Block(BlockKind.CODE, text, header=header, row=first + 1, path=scope.names))

    def characters(self, first: int, end: int) -> int:
        """Return how many characters the lines from `first` to before `end` have."""
        return self._offsets[end] - self._offsets[first]

    def inside(self, scope: Scope, names: Sequence[str], first: int, end: int) -> Scope:
        """Return the scope that the lines from `first` to before `end` open within another."""
        opening = "\n".join(self.lines[first:end]).rstrip()
        if len(opening) > _MAX_OPENING_CHARACTERS:
            opening = self.lines[first].rstrip()[:_MAX_OPENING_CHARACTERS]
        return Scope((*scope.names, *names), (*scope.openings, (first, opening)))
