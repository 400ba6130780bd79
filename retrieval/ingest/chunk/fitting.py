"""Splitting of large blocks: prose at sentences, code and lists at lines, tables at rows."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from retrieval.ingest.chunk.pack import Room
from retrieval.ingest.chunk.spans import Piece, Source, split, tokenised, whole
from retrieval.text.document import Block, BlockKind, TokenCounter

_UNDIVIDED: Final = frozenset({BlockKind.TABLE, BlockKind.CODE})
_HEADER_SHARE: Final = 2  #: A header of more than half of the target is not repeated.


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
