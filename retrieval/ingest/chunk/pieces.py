"""Cutting blocks into pieces that fit a chunk, with every token counted once."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from retrieval.ingest.types import Block, BlockKind, TokenCounter

#: The end of a sentence or a line, with the white space after it.
_BOUNDARY: Final = re.compile(r"(?<=[.!?…])[\"'”)\]]*\s+|\n+")
#: A cut looks for a boundary in the last part of what fits, so that pieces do not become tiny.
_LEAST_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a document that is never cut again."""

    text: str
    tokens: int
    page: int | None = None
    #: Whether a following chunk may repeat its end as overlap; tables and code are never repeated in part.
    is_prose: bool = True


def pieces_of(block: Block, counter: TokenCounter, *, target: int) -> Iterator[Piece]:
    """Yield the block whole when it has at most `target` tokens, else in pieces of at most that many."""
    spans = counter.token_spans(block.text)
    is_prose = block.kind not in {BlockKind.TABLE, BlockKind.CODE}
    if len(spans) <= target:
        if block.text.strip():
            yield Piece(block.text.strip(), len(spans), block.page, is_prose)
    elif block.kind is BlockKind.TABLE and 0 < (header_tokens := len(counter.token_spans(block.header))) <= target // 2:
        yield from _table_pieces(block, counter, target - header_tokens)
    else:
        for text, tokens in cut(block.text, spans, target=target):
            yield Piece(text, tokens, block.page, is_prose)


def _table_pieces(block: Block, counter: TokenCounter, room: int) -> Iterator[Piece]:
    """Yield a table in pieces of at most `room` tokens, each under the table's header."""
    header_tokens = len(counter.token_spans(block.header))
    body = block.text.removeprefix(block.header).lstrip("\n")
    for text, tokens in cut(body, counter.token_spans(body), target=room):
        yield Piece(f"{block.header}\n{text}", header_tokens + tokens, block.page, is_prose=False)


def cut(text: str, spans: Sequence[tuple[int, int]], *, target: int) -> Iterator[tuple[str, int]]:
    """Yield the text in parts of at most `target` tokens with their counts, cut at sentence or line ends if it can."""
    boundaries = [match.end() for match in _BOUNDARY.finditer(text)]
    start = 0
    while start < len(spans):
        end = _cut_place(spans, boundaries, start, min(start + target, len(spans)))
        begin = spans[start][0] if start else 0
        until = spans[end][0] if end < len(spans) else len(text)
        yield text[begin:until].strip(), end - start
        start = end


def _cut_place(spans: Sequence[tuple[int, int]], boundaries: Sequence[int], start: int, most: int) -> int:
    """Return the token to cut before: at the last boundary in the latter half of what fits, else at `most`."""
    if most == len(spans):
        return most
    place = bisect_right(boundaries, spans[most][0]) - 1
    if place < 0:
        return most
    token = bisect_right(spans, (boundaries[place], -1))
    return token if token >= start + (most - start) * _LEAST_SHARE and token > start else most


def tail(piece: Piece, counter: TokenCounter, *, tokens: int) -> Piece | None:
    """Return about the last `tokens` tokens of a prose piece, from the start of a word; None if it has no more."""
    if not piece.is_prose or tokens <= 0 or piece.tokens <= tokens:
        return None
    spans = counter.token_spans(piece.text)
    start = len(spans) - tokens
    while start < len(spans) and start > 0 and spans[start][0] == spans[start - 1][1]:
        start += 1
    if start >= len(spans):
        return None
    return Piece(piece.text[spans[start][0] :], len(spans) - start, piece.page)
