"""Drafts of chunks: small ones are merged, then all become chunks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final

from retrieval.ingest.chunk.merging import Key, Neighbour, merged_with
from retrieval.ingest.chunk.pack import Room, token_cost
from retrieval.ingest.chunk.spans import Piece, is_continued, links_of
from retrieval.text.document import HEADING_JOINT, ChunkDraft

#: Two sections under target / 4 are merged, and a part under target / 4 with its own section, if the result fits the
#: target. One under target / 8 is merged even if the result exceeds the target by target / 8, or if its neighbour (a
#: table, code) exceeds the target anyway: a chunk of a single line is a poor search result.
_SMALL_SHARE: Final = 4
_TINY_SHARE: Final = 8
_MAX_NAMES: Final = 4  #: Of more merged sections, only the first and the last are in the path.


@dataclass(frozen=True, slots=True)
class Draft:
    """The pieces of one chunk, with the headings above them."""

    path: tuple[Piece, ...]
    own: tuple[Piece, ...]
    repeated: tuple[Piece, ...] = ()
    names: tuple[Piece, ...] = ()  #: The headings of merged sections, directly below the path.

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
    size, next_size = (token_cost(draft.own, room.separator) for draft in (small, neighbour))
    if size < room.target // _TINY_SHARE:
        is_over = next_size > room.target
        return room.limit if is_over else min(room.limit, room.target + room.target // _TINY_SHARE)
    is_one_section = (small.path, small.names) == (neighbour.path, neighbour.names)
    larger = size if is_one_section else max(size, next_size)
    return room.target if larger < room.target // _SMALL_SHARE else 0


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
    names = (name for draft in (one, other) for name in draft.path[depth : depth + 1] or draft.names)
    own = (*one.path[depth:], *one.pieces, *other.path[depth:], *other.own)
    return Draft(one.path[:depth], own, names=tuple(dict.fromkeys(names)))


def _written(draft: Draft, ordinal: int, room: Room, title: str) -> ChunkDraft:
    path = tuple(map(_line, draft.path))
    path = path[1:] if path and path[0].casefold() == title.casefold() else path
    pages = [piece.source.block.page for piece in draft.pieces if piece.source.block.page is not None]
    rows = [rows for piece in draft.pieces if (rows := piece.rows)]
    joints = ("" if is_continued(before, after) else "\n\n" for before, after in pairwise(draft.pieces))
    text = "".join(joint + piece.text for joint, piece in zip(("", *joints), draft.pieces, strict=True))
    return ChunkDraft(
        ordinal=ordinal,
        text=text.strip("\n").rstrip(),
        heading_path=(*path, *_merged_heading(draft.names)),
        token_count=token_cost(draft.pieces, room.separator),
        page_start=min(pages, default=None),
        page_end=max(pages, default=None),
        row_start=min((first for first, _ in rows), default=None),
        row_end=max((last for _, last in rows), default=None),
        links=links_of(draft.pieces),
    )


def _merged_heading(names: Sequence[Piece]) -> Iterator[str]:
    """Yield one heading for merged sections, if there are any."""
    if names:
        shown = names if len(names) <= _MAX_NAMES else (names[0], names[-1])
        joint = HEADING_JOINT if shown is names else f"{HEADING_JOINT}…{HEADING_JOINT}"
        yield joint.join(map(_line, shown))


def _line(heading: Piece) -> str:
    return " ".join(heading.text.split())
