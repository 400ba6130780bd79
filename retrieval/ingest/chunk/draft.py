"""Drafts of chunks: small ones are merged, then all become chunks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final

from retrieval.ingest.chunk.merging import Key, Neighbour, merged_with
from retrieval.ingest.chunk.pack import Room, token_cost
from retrieval.ingest.chunk.spans import Piece, is_continued, links_of
from retrieval.text.document import ChunkDraft

#: A chunk under target / 4 is merged if the result fits the target. One under target / 8 is merged
#: even if the result is larger by target / 8, or if its neighbour (a table, code) exceeds the
#: target anyway: a chunk of a single line is a poor search result.
_SMALL_SHARE: Final = 4
_TINY_SHARE: Final = 8


@dataclass(frozen=True, slots=True)
class Draft:
    """The pieces of one chunk, with the headings above them."""

    path: tuple[Piece, ...]
    own: tuple[Piece, ...]
    repeated: tuple[Piece, ...] = ()

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All pieces in reading order."""
        return (*self.repeated, *self.own)


def written(drafts: Iterable[Draft], room: Room, title: str) -> tuple[ChunkDraft, ...]:
    """Return the drafts with tokens as chunks with ordinals; a first heading equal to `title` is not in their paths."""
    full = (draft for draft in drafts if token_cost(draft.own, room.separator))
    return tuple(_written(draft, ordinal, room, title) for ordinal, draft in enumerate(full))


def merge_small(drafts: Sequence[Draft], room: Room) -> list[Draft]:
    """Return the drafts with small ones merged into a neighbour of the same section or parent."""
    return merged_with(drafts, partial(_fitting, room), _together)


def _fitting(room: Room, side: Neighbour, small: Draft, neighbour: Draft) -> Iterator[Key]:
    """Yield the key of an allowed merge with a neighbour: closer in the outline, then smaller, then earlier wins."""
    pair = (neighbour, small) if side is Neighbour.BEFORE else (small, neighbour)
    tokens, depth = token_cost(_together(*pair).pieces, room.separator), _shared_depth(*pair)
    # The same section, siblings, or a parent and its child.
    are_related = depth >= max(len(small.path), len(neighbour.path)) - 1
    if are_related and tokens <= _max_merged(small, neighbour, room):
        yield -depth, tokens, side


def _max_merged(small: Draft, neighbour: Draft, room: Room) -> int:
    """Return the maximum size of a draft merged into its neighbour; 0 forbids it."""
    size = token_cost(small.own, room.separator)
    if size >= room.target // _SMALL_SHARE:
        return 0
    if size >= room.target // _TINY_SHARE:
        return room.target
    is_over = token_cost(neighbour.own, room.separator) > room.target
    return room.limit if is_over else min(room.limit, room.target + room.target // _TINY_SHARE)


def _shared_depth(one: Draft, other: Draft) -> int:
    depth = 0
    for left, right in zip(one.path, other.path, strict=False):
        if left != right:
            break
        depth += 1
    return depth


def _together(one: Draft, other: Draft) -> Draft:
    """Return both drafts under their shared path, with the rest of the paths as headings in the text."""
    depth = _shared_depth(one, other)
    return Draft(one.path[:depth], (*one.path[depth:], *one.pieces, *other.path[depth:], *other.own))


def _written(draft: Draft, ordinal: int, room: Room, title: str) -> ChunkDraft:
    path = tuple(" ".join(heading.text.split()) for heading in draft.path)
    pages = [piece.source.block.page for piece in draft.pieces if piece.source.block.page is not None]
    rows = [rows for piece in draft.pieces if (rows := piece.rows)]
    joints = ("" if is_continued(before, after) else "\n\n" for before, after in pairwise(draft.pieces))
    text = "".join(joint + piece.text for joint, piece in zip(("", *joints), draft.pieces, strict=True))
    return ChunkDraft(
        ordinal=ordinal,
        text=text.strip("\n").rstrip(),
        heading_path=path[1:] if path and path[0].casefold() == title.casefold() else path,
        token_count=token_cost(draft.pieces, room.separator),
        page_start=min(pages, default=None),
        page_end=max(pages, default=None),
        row_start=min((first for first, _ in rows), default=None),
        row_end=max((last for _, last in rows), default=None),
        links=links_of(draft.pieces),
    )
