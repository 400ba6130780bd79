"""Code-aware chunks: functions and classes stay complete if possible, small neighbours are merged, large ones split."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from retrieval.ingest.chunk.pack import Room, fitting_pieces, token_cost
from retrieval.ingest.chunk.runs import Run, merged, written
from retrieval.ingest.chunk.spans import Piece, Source, tokenised
from retrieval.text.document import Block, BlockKind, ChunkDraft, ParsedDocument, TokenCounter

_HEADER_SHARE: Final = 4  #: Opening lines of more than a fourth of the target are not repeated.


def chunk_by_code(document: ParsedDocument, counter: TokenCounter, room: Room) -> tuple[ChunkDraft, ...]:
    """Return chunks that begin and end with functions and classes.

    Neighbours that fit the target together are one chunk, and so is a function within the limit; a larger class is
    split between its methods, a larger function between its statements, and each later part repeats the lines that
    open the class and function. Imports stay with the following code.
    """
    sources = [tokenised(block, counter) for block in document.blocks]
    root = _tree(piece for source in sources for piece in fitting_pieces(source, room))
    headers = _Headers(counter, room)
    runs = [Run(tuple(pieces), headers.above(pieces[0])) for pieces in _parts(root, room, headers)]
    return written(merged(runs, room), room)


@dataclass(slots=True)
class _Scope:
    path: tuple[str, ...]
    members: list["Piece | _Scope"] = field(default_factory=list)

    def pieces(self) -> Iterator[Piece]:
        for member in self.members:
            if isinstance(member, _Scope):
                yield from member.pieces()
            else:
                yield member


@dataclass(frozen=True, slots=True)
class _Headers:
    counter: TokenCounter
    room: Room
    _known: dict[str, Source] = field(default_factory=dict)

    def above(self, piece: Piece) -> Source | None:
        block = piece.source.block
        if not block.header or block.kind is not BlockKind.CODE:
            return None
        if block.header not in self._known:
            self._known[block.header] = tokenised(Block(BlockKind.CODE, block.header), self.counter)
        header = self._known[block.header]
        return header if len(header.starts) <= self.room.target // _HEADER_SHARE else None


def _tree(pieces: Iterator[Piece]) -> _Scope:
    root = _Scope(())
    open_scopes = [root]
    for piece in pieces:
        path = piece.source.block.path
        while path[: len(open_scopes[-1].path)] != open_scopes[-1].path:
            open_scopes.pop()
        while len(open_scopes[-1].path) < len(path):
            scope = _Scope(path[: len(open_scopes[-1].path) + 1])
            open_scopes[-1].members.append(scope)
            open_scopes.append(scope)
        open_scopes[-1].members.append(piece)
    return root


def _parts(scope: _Scope, room: Room, headers: _Headers) -> Iterator[Sequence[Piece]]:
    pieces = list(scope.pieces())
    is_function = scope.path and not any(isinstance(member, _Scope) for member in scope.members)
    if _tokens(pieces, room, headers) <= (room.limit if is_function else room.target):
        if pieces:
            yield pieces
        return
    group: list[Piece] = []
    tokens = token_cost(pieces, room.separator)
    # The size of the smallest number of equal chunks.
    aim = ceil(tokens / max(1, ceil(tokens / room.target)))
    for member in scope.members:
        unit = list(member.pieces()) if isinstance(member, _Scope) else [member]
        if group and not _fits(group, unit, aim, room, headers):
            yield group
            group = []
        if not group and isinstance(member, _Scope) and _tokens(unit, room, headers) > room.target:
            yield from _parts(member, room, headers)
        else:
            group.extend(unit)
    if group:
        yield group


def _fits(group: Sequence[Piece], unit: Sequence[Piece], aim: int, room: Room, headers: _Headers) -> bool:
    """Return whether a unit joins the group: there is room, and at least half of it lies before the aim."""
    size = token_cost(unit, room.separator)
    before = token_cost(group, room.separator)
    return _tokens((*group, *unit), room, headers) <= room.target and before + size / 2 <= aim


def _tokens(pieces: Sequence[Piece], room: Room, headers: _Headers) -> int:
    return Run(tuple(pieces), headers.above(pieces[0])).tokens(room) if pieces else 0
