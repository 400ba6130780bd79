"""Record-based chunks: each record separate, a large one in parts that begin with its identifying lines."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Final

from retrieval.ingest.chunk.pack import Room, pack
from retrieval.ingest.chunk.runs import Run, merged, written
from retrieval.ingest.chunk.spans import Piece, Source, split, tokenised, whole
from retrieval.text.document import Block, BlockKind, ChunkDraft, ParsedDocument, TokenCounter

_HEADER_SHARE: Final = 4  #: Identifying lines of more than a fourth of the target are not repeated.


def chunk_by_record(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return a chunk per numbered record; large ones repeat their identifying lines, small others are merged."""
    sources = (tokenised(block, counter) for block in document.blocks)
    runs: list[Run] = []
    for is_numbered, group in groupby(sources, key=lambda source: source.block.row is not None):
        found = [run for source in group for run in _runs(source, counter, room)]
        runs += found if is_numbered else merged(found, room)
    return written(runs, room, numbers=_number)


def _number(piece: Piece) -> tuple[int, int] | None:
    row = piece.source.block.row
    return None if row is None else (row, row)


def _runs(source: Source, counter: TokenCounter, room: Room) -> Iterator[Run]:
    if len(source.starts) <= room.limit:
        yield Run((whole(source),))
        return
    header = tokenised(Block(BlockKind.PARAGRAPH, source.block.header), counter)
    is_repeated = 0 < len(header.starts) <= room.target // _HEADER_SHARE
    free = room.target - (len(header.starts) + room.separator) * is_repeated
    packed = pack(split(source, free), replace(room, target=free, overlap=0), balanced=True)
    parts = [Run(part.own, header if position and is_repeated else None) for position, part in enumerate(packed)]
    yield from merged(parts, room)
