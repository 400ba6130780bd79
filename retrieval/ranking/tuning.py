"""Which configurations a search for better numbers tries, and on which queries. Free of Django.

The best of many configurations is better by chance too, so they are chosen on one half of the queries, and the gain is
measured on the other one.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil
from random import Random
from typing import Any, Final

_MIN_QUERIES: Final = 8  #: Of the first round.
_DECIMALS: Final = 3


@dataclass(frozen=True, slots=True)
class Range:
    """A number to vary: some values for a grid, or two bounds, both inclusive, to draw between."""

    name: str  #: Dotted.
    values: tuple[float, ...] = ()
    low: float = 0.0
    high: float = 0.0
    is_whole: bool = False

    def draw(self, random: Random) -> float:
        """Return a value between the bounds, each equally likely."""
        if self.is_whole:
            return random.randint(int(self.low), int(self.high))
        return min(self.high, max(self.low, round(random.uniform(self.low, self.high), _DECIMALS)))


@dataclass(frozen=True, slots=True)
class Round:
    """A round of successive halving."""

    configurations: int  #: The best so many of the round before are measured,
    queries: int  #: on so many queries, those of the round before among them.


def in_tuning_half(query: str) -> bool:
    """Return whether a query is in the half that configurations are chosen on.

    Its SHA-256 decides alone, so that a query stays in its half whatever else a set holds.
    """
    return hashlib.sha256(query.encode()).digest()[0] % 2 == 0


def in_hash_order(queries: Iterable[str]) -> list[str]:
    """Return queries in an order that has nothing to do with what they ask, and stays."""
    return sorted(queries, key=lambda query: hashlib.sha256(query.encode()).digest())


def grid(ranges: Sequence[Range]) -> list[dict[str, float]]:
    """Return every combination of the values, the last range's changing fastest."""
    names = [it.name for it in ranges]
    return [dict(zip(names, values, strict=True)) for values in product(*(dict.fromkeys(it.values) for it in ranges))]


def drawn(ranges: Sequence[Range], *, count: int, seed: int) -> list[dict[str, float]]:
    """Return `count` combinations drawn at random; the same for the same seed. Bergstra and Bengio, JMLR 2012."""
    random = Random(seed)  # noqa: S311 -- no secret
    return [{it.name: it.draw(random) for it in ranges} for _ in range(count)]


def halving(configurations: int, queries: int) -> tuple[Round, ...]:
    """Return the rounds of successive halving: each has half the configurations and twice the queries of the last.

    The last one has all queries, the first one at least 8 if there are as many. Jamieson and Talwalkar, AISTATS 2016.
    """
    count = 1
    while configurations >= 2**count and queries >= _MIN_QUERIES * 2**count:
        count += 1
    return tuple(
        Round(ceil(configurations / 2**number), ceil(queries / 2 ** (count - 1 - number))) for number in range(count)
    )


def planned_searches(rounds: Sequence[Round]) -> int:
    """Return the number of searches of all rounds: what a round before has measured is not measured again."""
    before, total = 0, 0
    for it in rounds:
        total += it.configurations * (it.queries - before)
        before = it.queries
    return total


@dataclass(frozen=True, slots=True)
class Measured:
    """A configuration with its objective and its p95 so far."""

    number: int
    mean: float | None  #: None while no query has it.
    p95_ms: float | None

    def meets(self, max_p95_ms: float | None) -> bool:
        """Return whether it is fast enough; without a limit each is."""
        return max_p95_ms is None or (self.p95_ms is not None and self.p95_ms <= max_p95_ms)


def best_first(found: Iterable[Measured], *, max_p95_ms: float | None) -> list[Measured]:
    """Return those that are fast enough first, each group by falling objective; ties go to the lower number."""

    def order(it: Measured) -> tuple[bool, float, int]:
        return not it.meets(max_p95_ms), 1.0 if it.mean is None else -it.mean, it.number

    return sorted(found, key=order)


def pareto(found: Iterable[Measured]) -> list[Measured]:
    """Return the configurations that no other one beats in both respects, the fastest first."""
    front: list[Measured] = []
    known = [it for it in found if it.mean is not None and it.p95_ms is not None]
    for it in sorted(known, key=lambda it: (it.p95_ms, -(it.mean or 0.0), it.number)):
        if not front or (it.mean or 0.0) > (front[-1].mean or 0.0):
            front.append(it)
    return front


def range_of(written: Mapping[str, Any], *, is_whole: bool) -> Range:
    """Return a range from its stored form: a name with values, or with low and high."""
    return Range(
        name=written["name"],
        values=tuple(written.get("values", ())),
        low=written.get("low", 0.0),
        high=written.get("high", 0.0),
        is_whole=is_whole,
    )
