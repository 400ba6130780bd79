"""Comparing two ranked lists: shared items, similarity of their tops, rank changes. Pure."""

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

PERSISTENCE: Final = 0.9  #: Persistence of rank-biased overlap: at 0.9 the first ten ranks make up 86 % of it.

T = TypeVar("T", bound=Hashable)


class Direction(StrEnum):
    """How an item moved from the left list to the right one."""

    UP = "up"
    DOWN = "down"
    SAME = "same"
    LEFT = "only_left"
    RIGHT = "only_right"


@dataclass(frozen=True, slots=True)
class Move(Generic[T]):
    """An item's places, from 1, in two lists; None where it is not in one."""

    item: T
    left: int | None
    right: int | None

    @property
    def direction(self) -> Direction:
        """Up where the right list has it nearer to its top."""
        if self.left is None or self.right is None:
            return Direction.RIGHT if self.left is None else Direction.LEFT
        if self.left == self.right:
            return Direction.SAME
        return Direction.UP if self.right < self.left else Direction.DOWN

    @property
    def places(self) -> int:
        """How many places it went, 0 for one that is in one list only."""
        return abs(self.left - self.right) if self.left is not None and self.right is not None else 0


@dataclass(frozen=True, slots=True)
class Comparison(Generic[T]):
    """What two ranked lists have in common."""

    #: Every item of both: those of the right list in its order, then what only the left one has, in its order.
    moves: tuple[Move[T], ...]
    jaccard: float  #: Share of all items that both have, 0 to 1.
    rbo: float  #: Rank-biased overlap, 0 to 1: agreement that counts for more at the top.

    def count(self, direction: Direction) -> int:
        """Return how many items moved this way."""
        return sum(move.direction is direction for move in self.moves)

    @property
    def only_left(self) -> tuple[T, ...]:
        """What only the left list has, in its order."""
        return tuple(move.item for move in self.moves if move.right is None)

    @property
    def both(self) -> tuple[T, ...]:
        """What both have, in the right list's order."""
        return tuple(move.item for move in self.moves if move.left is not None and move.right is not None)

    @property
    def only_right(self) -> tuple[T, ...]:
        """What only the right list has, in its order."""
        return tuple(move.item for move in self.moves if move.left is None)


@dataclass(frozen=True, slots=True)
class StageRanking(Generic[T]):
    """What a stage left."""

    stage: str
    items: Sequence[T]  #: In order, none twice.
    is_leg: bool = False  #: Whether it ran beside others, and the next stage merged them.


@dataclass(frozen=True, slots=True)
class Agreement:
    """How much two searches agree after a stage that both have."""

    stage: str
    rbo: float  #: Rank-biased overlap of what it left in both, 0 to 1.
    #: How much less that is than after the stage before, or for the stage that merges the legs, than of the leg that
    #: agrees least; 0 for no less.
    lost: float


def agreements(left: Sequence[StageRanking[T]], right: Sequence[StageRanking[T]]) -> tuple[Agreement, ...]:
    """Return the agreement after each stage that two searches share, in the order of the right one."""
    others = {it.stage: it.items for it in left}
    found, before, legs = [], 1.0, []
    for it in right:
        if it.stage not in others:
            continue
        rbo = rank_biased_overlap(others[it.stage], it.items)
        if it.is_leg:
            found.append(Agreement(it.stage, rbo, 1.0 - rbo))
            legs.append(rbo)
            continue
        before = min(legs) if legs else before
        found.append(Agreement(it.stage, rbo, max(0.0, before - rbo)))
        before, legs = rbo, []
    return tuple(found)


def deciding(stages: Sequence[Agreement]) -> Agreement | None:
    """Return the stage after which two searches agree less by the most, the first of equals; None if none does."""
    most = max(stages, key=lambda it: it.lost, default=None)
    return most if most and most.lost > 0 else None


def compare(left: Sequence[T], right: Sequence[T]) -> Comparison[T]:
    """Return the comparison of two ranked lists. Expects no item twice in one list."""
    places = {item: place for place, item in enumerate(left, start=1)}
    moves = [Move(item, places.pop(item, None), place) for place, item in enumerate(right, start=1)]
    moves += [Move(item, place, None) for item, place in places.items()]
    return Comparison(tuple(moves), jaccard(left, right), rank_biased_overlap(left, right))


def jaccard(left: Sequence[T], right: Sequence[T]) -> float:
    """Return |A and B| / |A or B|, 0 to 1; two empty lists are equal."""
    every = frozenset(left) | frozenset(right)
    return len(frozenset(left) & frozenset(right)) / len(every) if every else 1.0


def rank_biased_overlap(left: Sequence[T], right: Sequence[T], *, persistence: float = PERSISTENCE) -> float:
    """Return the extrapolated rank-biased overlap of two ranked lists, 0 to 1.

    With p the persistence (between 0 and 1), s and l the lengths of the shorter and the longer list, and X(d) the size
    of the overlap of their first d items:

        (1 - p) / p * (sum over d = 1..l of X(d) / d * p^d + sum over d = s+1..l of X(s) * (d - s) / (s * d) * p^d)
        + ((X(l) - X(s)) / l + X(s) / s) * p^l

    Webber, Moffat and Zobel, A similarity measure for indefinite rankings, TOIS 28(4), 2010, equation 32. Two empty
    lists are equal, an empty one and another have nothing in common.
    """
    short, long = sorted((left, right), key=len)
    if not short:
        return 0.0 if long else 1.0
    overlaps = list(_overlaps(short, long))
    at_short, at_long = overlaps[len(short) - 1], overlaps[-1]
    agreements = (
        (overlap + at_short * max(0, depth - len(short)) / len(short)) / depth * persistence**depth
        for depth, overlap in enumerate(overlaps, start=1)
    )
    seen = (1 - persistence) / persistence * math.fsum(agreements)
    beyond = ((at_long - at_short) / len(long) + at_short / len(short)) * persistence ** len(long)
    return min(1.0, seen + beyond)


def _overlaps(short: Sequence[T], long: Sequence[T]) -> Iterator[int]:
    """Yield the size of the overlap of the first d items for each d up to the longer list's length."""
    first, second, shared = set[T](), set[T](), 0
    for depth, item in enumerate(long):
        second.add(item)
        shared += item in first
        if depth < len(short):
            first.add(short[depth])
            shared += short[depth] in second
        yield shared


@dataclass(frozen=True, slots=True)
class Overlap:
    """What the tops of two ranked lists share."""

    shared: int
    of: int  #: Items of the longer top.

    @property
    def share(self) -> float:
        """Shared items by those of the longer top, 0 to 1; two empty tops are equal."""
        return self.shared / self.of if self.of else 1.0


def overlap_at(depth: int, left: Sequence[T], right: Sequence[T]) -> Overlap:
    """Return what the first `depth` items of two ranked lists share. Expects no item twice in one list."""
    tops = left[:depth], right[:depth]
    return Overlap(len(frozenset(tops[0]) & frozenset(tops[1])), max(map(len, tops)))


def places_of(rankings: Sequence[Sequence[T]]) -> dict[T, tuple[int | None, ...]]:
    """Return each item's place, from 1, in every list; None where it is not in one.

    Items in most lists come first, then those with the best mean rank; ties keep the order of the lists.
    """
    places = [{item: place for place, item in enumerate(ranking, start=1)} for ranking in rankings]
    found = {item: tuple(known.get(item) for known in places) for ranking in rankings for item in ranking}

    def order(entry: tuple[T, tuple[int | None, ...]]) -> tuple[int, float]:
        ranks = [rank for rank in entry[1] if rank is not None]
        return -len(ranks), sum(ranks) / len(ranks)

    return dict(sorted(found.items(), key=order))


def alone(rankings: Sequence[Sequence[T]], depth: int) -> tuple[tuple[T, ...], ...]:
    """Return the items of each list's first `depth` that are in no other list's first `depth`, in its order."""
    tops = [ranking[:depth] for ranking in rankings]
    counts = Counter(item for top in tops for item in top)
    return tuple(tuple(item for item in top if counts[item] == 1) for top in tops)
