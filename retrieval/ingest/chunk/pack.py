"""Packing of pieces into chunks of a token size, with overlap between the chunks of one text.

Large blocks are split before: prose at sentences, code and lists at lines, tables at rows.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from retrieval.ingest.chunk.spans import (
    Piece,
    Source,
    is_continued,
    sentence_starts,
    split,
    tokenised,
    whole,
    word_start,
)
from retrieval.text.document import Block, BlockKind, TokenCounter

_MAX_LEAD_IN_TOKENS: Final = 80  #: A sentence with a colon at its end introduces the next piece, unless it is longer.
_NEVER_REPEATED: Final = frozenset({BlockKind.TABLE, BlockKind.HEADING})
_UNDIVIDED: Final = frozenset({BlockKind.TABLE, BlockKind.CODE})
_HEADER_SHARE: Final = 2  #: A header of more than half of the target is not repeated.


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


def sources(blocks: Iterable[Block], counter: TokenCounter, room: Room) -> list[Source]:
    """Return the blocks tokenised; a table larger than a chunk becomes several with the same header."""
    return [part for block in blocks for part in _parts(tokenised(block, counter), counter, room)]


def fitting_pieces(source: Source, room: Room) -> list[Piece]:
    """Return a source as pieces that fit: prose and lists the target of a chunk, tables and code its limit."""
    limit = room.limit if source.block.kind in _UNDIVIDED else room.target
    return [whole(source)] if len(source.starts) <= limit else split(source, room.target - room.overlap)


def _parts(source: Source, counter: TokenCounter, room: Room) -> Iterable[Source]:
    if source.block.kind is not BlockKind.TABLE or len(source.starts) <= room.limit:
        return (source,)
    header = tokenised(Block(BlockKind.TABLE, source.block.header), counter)
    if not header.starts or len(header.starts) > room.target // _HEADER_SHARE:
        return (source,)
    return _tables_with_header(source, header, room)


def _tables_with_header(source: Source, header: Source, room: Room) -> Iterator[Source]:
    free = room.target - len(header.starts) - room.separator
    rows = [piece for piece in split(source, free) if piece.end > len(header.starts)]
    group: list[Piece] = []
    number = source.block.row
    for row in rows:
        if group and row.end - group[0].first > free:
            yield _table_part(group, header, number)
            if number is not None:
                number += sum(piece.text.count("\n") for piece in group)
            group = []
        group.append(row)
    yield _table_part(group, header, number)


def _table_part(rows: list[Piece], header: Source, number: int | None) -> Source:
    """Return the rows below the header as a table from row `number`; the tokens' positions are only shifted."""
    source = rows[0].source
    begin, end = source.position(rows[0].first), source.position(rows[-1].end)
    body = source.block.text[begin:end].rstrip()
    shift = len(header.block.text) + 1 - begin
    moved = [start + shift for start in source.starts[rows[0].first : rows[-1].end]]
    block = replace(source.block, text=f"{header.block.text}\n{body}", row=number)
    return Source(block, [*header.starts, *moved])
