"""Packing pieces into chunks up to the target, with an overlap between neighbours."""

from collections.abc import Iterable, Iterator

from retrieval.ingest.chunk.pieces import Piece, tail
from retrieval.ingest.types import ChunkLimits, TokenCounter


def packed(pieces: Iterable[Piece], counter: TokenCounter, limits: ChunkLimits) -> Iterator[tuple[Piece, ...]]:
    """Yield groups of pieces of about the target size; each but the first begins with the end of the one before.

    A group exceeds the target by at most the overlap, and never the most.
    """
    group: list[Piece] = []
    size = 0
    for piece in pieces:
        if group and size + piece.tokens > limits.target:
            yield tuple(group)
            repeated = tail(group[-1], counter, tokens=min(limits.overlap, limits.most - limits.target))
            group = [repeated] if repeated else []
            size = 0
        group.append(piece)
        size += piece.tokens
    if group:
        yield tuple(group)


def joined(group: Iterable[Piece]) -> str:
    """Return the group's text, a blank line between pieces."""
    return "\n\n".join(piece.text for piece in group)
