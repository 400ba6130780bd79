"""Packs pieces into chunks of a token size, with overlap between the chunks of one text."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from retrieval.ingest.chunk.spans import Piece, is_continued, sentence_starts, word_start
from retrieval.text.document import BlockKind

#: A sentence with a colon at its end introduces what follows; a longer one stands by itself.
_MAX_LEAD_IN_TOKENS: Final = 80
_NEVER_REPEATED: Final = frozenset({BlockKind.TABLE, BlockKind.HEADING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much fits in a chunk, in tokens."""

    target: int
    limit: int
    overlap: int
    #: Tokens of the blank line between two blocks (0 for tokenizers that drop white space).
    separator: int


@dataclass(frozen=True, slots=True)
class Packed:
    """The pieces of one chunk; `repeated` are the last ones of the chunk before it."""

    repeated: tuple[Piece, ...]
    own: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class _Bundle:
    """Pieces that stay together."""

    pieces: tuple[Piece, ...]
    #: Tokens with the blank lines between and before them.
    tokens: int


def token_cost(pieces: Sequence[Piece], separator: int) -> int:
    """Return the tokens of the pieces put together."""
    joints = sum(not is_continued(before, after) for before, after in pairwise(pieces))
    return sum(piece.tokens for piece in pieces) + separator * joints


def pack(pieces: Sequence[Piece], room: Room, *, balanced: bool) -> list[Packed]:
    """Return the pieces packed to at most `room.target` tokens a chunk, in order.

    A single piece that is larger makes a chunk by itself. Headings and lead-ins stay with what
    follows. `balanced` makes the chunks about equally large; otherwise each is filled and the
    last one has what is left.
    """
    aim = _aim(token_cost(pieces, room.separator), room) if balanced else room.target
    packed: list[Packed] = []
    repeated: tuple[Piece, ...] = ()
    own: list[Piece] = []
    repeated_tokens = own_tokens = 0
    for bundle in _bundles(pieces, room):
        is_over = repeated_tokens + own_tokens + bundle.tokens > room.target
        # A bundle goes to the side of the aim on which more of it lies.
        if own and (is_over or own_tokens + bundle.tokens / 2 > aim):
            packed.append(Packed(repeated, tuple(own)))
            repeated = _overlap(own, bundle, room)
            repeated_tokens, own_tokens, own = token_cost(repeated, room.separator), 0, []
        own.extend(bundle.pieces)
        own_tokens += bundle.tokens
    return [*packed, Packed(repeated, tuple(own))] if own else packed


def _aim(tokens: int, room: Room) -> int:
    """Return the size at which equal chunks of `tokens` tokens are fewest."""
    if tokens <= room.target:
        return room.target
    chunks = math.ceil((tokens - room.overlap) / (room.target - room.overlap))
    return math.ceil(tokens / chunks)


def _bundles(pieces: Iterable[Piece], room: Room) -> Iterator[_Bundle]:
    """Yield headings and lead-ins with the piece after them, other pieces one by one."""
    held: list[Piece] = []
    tokens = 0
    for piece in pieces:
        added = piece.tokens + room.separator * (piece.first == 0)
        if held and tokens + added > _limit_with(held, room):
            yield _Bundle(tuple(held), tokens)
            held, tokens = [], 0
        held.append(piece)
        tokens += added
        if not _leads(piece):
            yield _Bundle(tuple(held), tokens)
            held, tokens = [], 0
    if held:
        yield _Bundle(tuple(held), tokens)


def _limit_with(leads: Sequence[Piece], room: Room) -> int:
    """Return how large a bundle may grow: a heading may push its text over the target, a lead-in may not."""
    return room.limit if any(piece.kind is BlockKind.HEADING for piece in leads) else room.target


def _leads(piece: Piece) -> bool:
    if piece.kind is BlockKind.HEADING:
        return True
    return piece.tokens <= _MAX_LEAD_IN_TOKENS and piece.text.rstrip().endswith(":")


def _overlap(pieces: Sequence[Piece], bundle: _Bundle, room: Room) -> tuple[Piece, ...]:
    """Return what of `pieces` is repeated before the bundle; a few words would not be worth it."""
    free = min(room.overlap, room.target - bundle.tokens)
    return _tail(pieces, free) if 2 * free > room.overlap else ()


def _tail(pieces: Sequence[Piece], overlap: int) -> tuple[Piece, ...]:
    """Return the last pieces with at most `overlap` tokens.

    They start at a sentence if one is short enough, else at a word. Nothing when that would
    repeat all of the pieces. Tables repeat their header instead.
    """
    tail: tuple[Piece, ...] = ()
    for piece in reversed(pieces):
        if piece.kind in _NEVER_REPEATED or overlap <= 0:
            return tail
        if piece.tokens > overlap:
            return (*_last_sentences(piece, overlap), *tail) or _last_words(piece, overlap)
        tail = (piece, *tail)
        overlap -= piece.tokens
    return ()


def _last_sentences(piece: Piece, limit: int) -> tuple[Piece, ...]:
    starts = sentence_starts(piece.source, piece.end - limit, piece.end)
    return (Piece(piece.source, starts[0], piece.end),) if starts else ()


def _last_words(piece: Piece, limit: int) -> tuple[Piece, ...]:
    if piece.kind is not BlockKind.PARAGRAPH:
        return ()
    first = word_start(piece.source, range(piece.end - limit, piece.end))
    return (Piece(piece.source, first, piece.end),)
