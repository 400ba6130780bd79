"""Blocks with their tokens, and pieces of them that chunks are made of."""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final

from retrieval.text.document import MAX_TOKEN_CHARACTERS, Block, BlockKind, Hyperlink, TokenCounter

_WINDOW_CHARACTERS: Final = 100_000  #: Long blocks are tokenised in windows, to limit the memory for spans.
#: The end of a sentence or line; the next one starts at the end of the match.
_SENTENCE_ENDS: Final = re.compile(r"\n+|(?<=[.!?])[\"'\u201d\u2019)\]]{0,3}\s+(?=[^\sa-z])|(?<=[\u3002\uff01\uff1f])")
_LINE_ENDS: Final = re.compile(r"\n+")
_LINE_BREAK: Final = re.compile(r"\n")
_CACHED_TEXTS: Final = 4  #: Blocks are read one after the other, so few texts are cached.
_MAX_INDENTATION: Final = 200
_MAX_LINKS: Final = 64  #: Maximum links of one chunk: a longer list has little text for each of them.
#: The start of a sentence is searched from this far before it: a full stop, quotes and a space.
_LOOK_BACK_CHARACTERS: Final = 8
_BROKEN_AT_LINES: Final = frozenset({BlockKind.CODE, BlockKind.TABLE, BlockKind.LIST})


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A block and the character at which each of its tokens starts."""

    block: Block
    starts: Sequence[int]

    def position(self, token: int) -> int:
        """Return the first character of a piece that starts with `token`, with the indentation before it."""
        if token == 0 or token >= len(self.starts):
            return 0 if token == 0 else len(self.block.text)
        start = self.starts[token]
        line_end = self.block.text.rfind("\n", max(0, start - _MAX_INDENTATION), start)
        is_indented = line_end >= 0 and not self.block.text[line_end:start].strip()
        return line_end + 1 if is_indented else start


@dataclass(frozen=True, slots=True)
class Piece:
    """The tokens `first` to `end` (not included) of a source."""

    source: Source
    first: int
    end: int

    @property
    def text(self) -> str:
        """The text of the piece with the white space up to the next piece."""
        return self.source.block.text[self.source.position(self.first) : self.source.position(self.end)]

    @property
    def tokens(self) -> int:
        """The number of tokens."""
        return self.end - self.first

    @property
    def kind(self) -> BlockKind:
        """The kind of its block."""
        return self.source.block.kind

    @property
    def rows(self) -> tuple[int, int] | None:
        """The numbers of the first and the last row or line, None for only a header or without numbers."""
        block = self.source.block
        if block.row is None:
            return None
        begin = self.source.position(self.first)
        text = self.text.rstrip()
        # The header of a table is its first line and has no number.
        first = block.row + line_breaks(block.text, begin) - bool(block.header)
        last = first + text.count("\n")
        return (max(first, block.row), last) if last >= block.row else None


def is_continued(before: Piece, after: Piece) -> bool:
    """Return whether a piece starts where the other ends, so that no blank line separates them."""
    return before.source is after.source and before.end == after.first


def links_of(pieces: Sequence[Piece]) -> tuple[Hyperlink, ...]:
    """Return the links whose texts are in the pieces, each once, in order; at most 64."""
    found = (
        link
        for piece in pieces
        if piece.source.block.links
        for text in (" ".join(piece.text.split()),)
        for link in piece.source.block.links
        if link.text in text
    )
    return tuple(islice(dict.fromkeys(found), _MAX_LINKS))


def tokenised(block: Block, counter: TokenCounter) -> Source:
    """Return the block with its tokens, none of more than 64 characters."""
    starts = array("I")
    previous = -1
    for offset, window in _windows(block.text):
        for start, _ in counter.token_spans(window):
            starts.extend(range(previous + MAX_TOKEN_CHARACTERS, offset + start, MAX_TOKEN_CHARACTERS))
            previous = offset + start
            starts.append(previous)
    if starts:
        starts.extend(range(previous + MAX_TOKEN_CHARACTERS, len(block.text), MAX_TOKEN_CHARACTERS))
    return Source(block, starts)


@lru_cache(maxsize=_CACHED_TEXTS)
def _breaks(text: str) -> Sequence[int]:
    return array("I", (found.start() for found in _LINE_BREAK.finditer(text)))


def line_breaks(text: str, end: int) -> int:
    """Return the number of line breaks in a text before a position."""
    return bisect_left(_breaks(text), end)


def whole(source: Source) -> Piece:
    """Return the entire source as one piece."""
    return Piece(source, 0, len(source.starts))


def split(source: Source, max_length: int) -> list[Piece]:
    """Return a source split at sentences or lines, longer ones than `max_length` tokens at words; none is blank."""
    cuts = [0, *sentence_starts(source, 1, len(source.starts)), len(source.starts)]
    pieces = (
        piece for first, end in pairwise(cuts) if end > first for piece in _at_words(source, first, end, max_length)
    )
    return [piece for piece in pieces if piece.text.strip()]


def sentence_starts(source: Source, lowest: int, highest: int) -> list[int]:
    """Return, in order, the tokens from `lowest` to before `highest` at which a sentence, or in code a line, starts."""
    ends = _LINE_ENDS if source.block.kind in _BROKEN_AT_LINES else _SENTENCE_ENDS
    begin = max(0, source.position(lowest) - _LOOK_BACK_CHARACTERS)
    found = ends.finditer(source.block.text, begin, source.position(highest))
    tokens = (bisect_left(source.starts, sentence_end.end()) for sentence_end in found)
    return sorted({token for token in tokens if lowest <= token < highest})


def word_start(source: Source, candidates: Sequence[int]) -> int:
    """Return the first of the candidate tokens that starts a word, or else the first of all."""
    text, starts = source.block.text, source.starts
    words = (token for token in candidates if token == 0 or text[starts[token] - 1].isspace())
    return next(words, candidates[0])


def _at_words(source: Source, first: int, end: int, max_length: int) -> Iterator[Piece]:
    while end - first > max_length:
        cut = word_start(source, range(first + max_length, first + max_length - max_length // 4 - 1, -1))
        yield Piece(source, first, cut)
        first = cut
    yield Piece(source, first, end)


def _windows(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while len(text) - start > _WINDOW_CHARACTERS:
        end = max(text.rfind(sign, start + 1, start + _WINDOW_CHARACTERS) for sign in " \n")
        end = end if end > start else start + _WINDOW_CHARACTERS
        yield start, text[start:end]
        start = end
    yield start, text[start:]
