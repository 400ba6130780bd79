"""Selecting and ordering the chunks of a context under a token budget. Pure.

Each chunk is packed once, in its strongest role. A parent is the rest of a section, chunk by chunk, so that no section
repeats its primary hit, and every passage can be cited.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from retrieval.engine.types import PRIMARY, ChunkId, CountTokens, Hit, Ranking
from retrieval.index.types import Neighbour, Relation

PACK_COUNTED: Final = "pack_counted"  #: The event with the tokenizer that counted a pack.
BREAK: Final = "\n\n"

_RANKS: Final = {relation: rank for rank, relation in enumerate(Relation, start=1)}


@dataclass(frozen=True, slots=True)
class Item:
    """A chunk to pack, with its role."""

    hit: Hit
    role: str  #: "primary", or a relation.
    place: int  #: Place of its primary hit, from 0.
    distance: int = 0

    @property
    def chunk_id(self) -> ChunkId:
        """The chunk's id."""
        return self.hit.chunk_id


@dataclass(frozen=True, slots=True)
class Numbered:
    """A numbered item; lower numbers have priority."""

    number: int
    item: Item
    header: str
    tokens: int  #: Tokens of both and of the break behind them.


@dataclass(frozen=True, slots=True)
class Packing:
    """The items that fit the budget, in reading order, and the dropped ones, in dropping order."""

    kept: tuple[Numbered, ...]
    dropped: tuple[Numbered, ...]

    @property
    def tokens(self) -> int:
        """Tokens of all packed items."""
        return sum(it.tokens for it in self.kept)


def items(primaries: Ranking, neighbours: Sequence[Neighbour]) -> tuple[Item, ...]:
    """Return every chunk once by priority: primary hits, parents, siblings, cross-page neighbours.

    Within a relation those of the better primary hit come first, then the nearer, then the earlier ones. Of chunks with
    the same text only the first is returned. Expects primary hits best first.
    """
    places = {hit.chunk_id: place for place, hit in enumerate(primaries)}
    around = [Item(it.hit, it.relation, places[it.primary], it.distance) for it in neighbours if it.primary in places]
    around.sort(key=lambda it: (_RANKS[Relation(it.role)], it.place, it.distance, it.chunk_id))
    found: dict[ChunkId, Item] = {}
    texts: set[str] = set()
    for item in (*(Item(hit, PRIMARY, place) for place, hit in enumerate(primaries)), *around):
        text = item.hit.chunk.content_hash
        if item.chunk_id in found or (item.role != PRIMARY and text in texts):
            continue
        found[item.chunk_id] = item
        texts.add(text)
    return tuple(found.values())


def packed(
    found: Sequence[Item],
    *,
    budget_tokens: int,
    min_primary: int,
    header: Callable[[int, Hit], str],
    count_tokens: CountTokens,
    whole_sections: bool = False,
) -> Packing:
    """Drop items from the end of `found` until the rest fits the budget; the first `min_primary` hits always stay.

    Cross-page neighbours are dropped first, then siblings, parents and the other primary hits; with `whole_sections`
    all parents of a primary hit together. The packed items are
    numbered from 1. Header, text and the break behind them are counted again, since the stored counts may be those of
    another tokenizer.
    """
    lines = [header(number, item.hit) for number, item in enumerate(found, start=1)]
    sizes = count_tokens([f"{line}\n{item.hit.chunk.text}{BREAK}" for line, item in zip(lines, found, strict=True)])
    numbered = [
        Numbered(number, item, line, tokens)
        for number, (item, line, tokens) in enumerate(zip(found, lines, sizes, strict=True), start=1)
    ]
    stays = min(min_primary, sum(item.role == PRIMARY for item in found))
    total = sum(it.tokens for it in numbered)
    dropped: list[Numbered] = []
    while total > budget_tokens and len(numbered) > stays:
        for _ in range(_last_section(numbered) if whole_sections else 1):
            dropped.append(numbered.pop())
            total -= dropped[-1].tokens

    def reading_order(it: Numbered) -> tuple[int, int, int, ChunkId]:
        # Each primary hit with its parents right after it, then all siblings, then all cross-page neighbours.
        rank = 0 if it.item.role == PRIMARY else _RANKS[Relation(it.item.role)]
        if rank <= _RANKS[Relation.PARENT]:
            return (0, it.item.place, rank, it.item.chunk_id)
        return (rank, it.item.place, 0, it.item.chunk_id)

    return Packing(tuple(sorted(numbered, key=reading_order)), tuple(dropped))


def _last_section(numbered: Sequence[Numbered]) -> int:
    """Return how many items at the end are parents of one primary hit, 1 for an item of another role."""
    last = numbered[-1].item
    if last.role != Relation.PARENT:
        return 1
    same = takewhile(lambda it: (it.item.role, it.item.place) == (last.role, last.place), reversed(numbered))
    return len(tuple(same))


def counted(found: Sequence[Item]) -> Mapping[str, int]:
    """Return how many items each role has: primary, parent, sibling, cross_page."""
    return {role: sum(item.role == role for item in found) for role in (PRIMARY, *Relation)}
