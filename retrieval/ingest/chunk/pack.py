"""Packing of pieces into chunks of a token size, with overlap between the chunks of one text."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from retrieval.ingest.chunk.spans import Piece, is_continued, sentence_starts, word_start
from retrieval.text.document import BlockKind

_MAX_LEAD_IN_TOKENS: Final = 80  #: A sentence with a colon at its end introduces the next piece, unless it is longer.
_NEVER_REPEATED: Final = frozenset({BlockKind.TABLE, BlockKind.HEADING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Sizes of a chunk in tokens."""

    target: int
    limit: int
    overlap: int
    separator: int  #: Tokens of the blank line between two blocks (0 for tokenizers that drop white space).


@dataclass(frozen=True, slots=True)
class Packed:
    """The pieces of one chunk; `repeated` are the last ones of the previous chunk."""

    repeated: tuple[Piece, ...]
    own: tuple[Piece, ...]


def token_cost(pieces: Sequence[Piece], separator: int) -> int:
    """Return the number of tokens of the joined pieces."""
    joints = sum(not is_continued(before, after) for before, after in pairwise(pieces))
    return sum(piece.tokens for piece in pieces) + separator * joints


def pack(pieces: Sequence[Piece], room: Room, *, balanced: bool) -> list[Packed]:
    """Return the pieces packed to at most `room.target` tokens per chunk, in order.

    A single larger piece is a separate chunk. Headings and lead-ins stay with the next piece. `balanced` makes the
    chunks about equally large; otherwise each is filled and the last one has the rest.
    """
    tokens, aim = token_cost(pieces, room.separator), room.target
    if balanced and tokens > room.target:
        # The size of the smallest number of equal chunks.
        aim = math.ceil(tokens / math.ceil((tokens - room.overlap) / (room.target - room.overlap)))
    packed: list[Packed] = []
    repeated: tuple[Piece, ...] = ()
    own: list[Piece] = []
    repeated_tokens = own_tokens = 0
    for bundle, bundle_tokens in _bundles(pieces, room):
        is_over = repeated_tokens + own_tokens + bundle_tokens > room.target
        # A bundle joins the chunk if at least half of it lies before the aim.
        if own and (is_over or own_tokens + bundle_tokens / 2 > aim):
            packed.append(Packed(repeated, tuple(own)))
            # An overlap of a few words is left out.
            free = min(room.overlap, room.target - bundle_tokens)
            repeated = _tail(own, free) if 2 * free > room.overlap else ()
            repeated_tokens, own_tokens, own = token_cost(repeated, room.separator), 0, []
        own.extend(bundle)
        own_tokens += bundle_tokens
    return [*packed, Packed(repeated, tuple(own))] if own else packed


def _bundles(pieces: Iterable[Piece], room: Room) -> Iterator[tuple[list[Piece], int]]:
    """Yield headings and lead-ins with the next piece, others alone, each with its tokens and those of blank lines."""
    bundle: list[Piece] = []
    tokens = 0
    before: Piece | None = None
    for piece in pieces:
        is_joined = before is not None and is_continued(before, piece)
        added, before = piece.tokens + room.separator * (not is_joined), piece
        is_lead_in = piece.tokens <= _MAX_LEAD_IN_TOKENS and piece.text.rstrip().endswith(":")
        leads = piece.kind is BlockKind.HEADING or is_lead_in
        # A heading may push its text over the target, a lead-in may not.
        has_heading = any(lead.kind is BlockKind.HEADING for lead in bundle)
        if bundle and tokens + added > (room.limit if has_heading else room.target):
            yield bundle, tokens
            bundle, tokens = [], 0
        bundle.append(piece)
        tokens += added
        if not leads:
            yield bundle, tokens
            bundle, tokens = [], 0
    if bundle:
        yield bundle, tokens


def _tail(pieces: Sequence[Piece], overlap: int) -> tuple[Piece, ...]:
    """Return the last pieces with at most `overlap` tokens, from a sentence or a word; empty if that were all."""
    tail: tuple[Piece, ...] = ()
    for piece in reversed(pieces):
        if piece.kind in _NEVER_REPEATED or overlap <= 0:
            return tail
        if piece.tokens > overlap:
            starts = sentence_starts(piece.source, piece.end - overlap, piece.end)
            if starts:
                return (Piece(piece.source, starts[0], piece.end), *tail)
            if tail or piece.kind is not BlockKind.PARAGRAPH:
                return tail
            first = word_start(piece.source, range(piece.end - overlap, piece.end))
            return (Piece(piece.source, first, piece.end),)
        tail = (piece, *tail)
        overlap -= piece.tokens
    return ()
