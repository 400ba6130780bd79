"""Two rankings merged into one that people see, and which of the two they then use more. Free of Django.

Team draft (Radlinski, Kurup and Joachims, How does clickthrough data reflect retrieval quality?, CIKM 2008): in turn
each ranking adds its best item that is not in the list yet, as captains pick players, and is credited with the item's
use. A coin decides which one begins each round, so that neither gains by the places of its items.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final, Self, TypeVar

_Z: Final = 1.959964  #: Of the 95 % interval.
_LEVEL: Final = 0.05

T = TypeVar("T", bound=Hashable)


class Team(StrEnum):
    """The ranking that an item was taken from."""

    A = "A"
    B = "B"


def coin(seed: int) -> Callable[[], bool]:
    """Return a fair coin; the same seed gives the same tosses."""
    toss = Random(seed)  # noqa: S311 -- a seed makes the draft repeatable
    return lambda: toss.random() < 0.5  # noqa: PLR2004


def team_draft(
    first: Sequence[T], second: Sequence[T], *, begins: Callable[[], bool], length: int
) -> dict[T, Team | None]:
    """Return at most `length` items in order, each with its team; `begins` tosses whether A begins a round.

    When one ranking has no more items, the rest of the other one follows without a team, so that a longer list gains no
    credit by its length. Expects no item twice in one ranking.
    """
    drafted: dict[T, Team | None] = {}
    order: list[Team] = []
    while len(drafted) < length:
        first_left, second_left = (
            next((it for it in ranking if it not in drafted), None) for ranking in (first, second)
        )
        if first_left is None or second_left is None:
            break
        order = order or ([Team.A, Team.B] if begins() else [Team.B, Team.A])
        team = order.pop(0)
        drafted[first_left if team is Team.A else second_left] = team
    rest = [it for it in (*first, *second) if it not in drafted]
    return drafted | dict.fromkeys(rest[: length - len(drafted)])


@dataclass(frozen=True, slots=True)
class Preference:
    """How often the use of an interleaved list preferred one ranking, over the questions with any credit."""

    wins_a: int = 0
    wins_b: int = 0
    ties: int = 0

    @classmethod
    def of(cls, questions: Iterable[tuple[float, float]]) -> Self:
        """Return the preference of questions, each with the credit of A and of B."""
        signs = [(a > b) - (a < b) for a, b in questions]
        return cls(signs.count(1), signs.count(-1), signs.count(0))

    @property
    def questions(self) -> int:
        """The number of questions with credit."""
        return self.wins_a + self.wins_b + self.ties

    @property
    def delta(self) -> float | None:
        """Share of questions that A wins, ties as one half, less 0.5: -0.5 to 0.5; None without questions.

        Chapelle, Joachims, Radlinski and Yue, Large-scale validation and analysis of interleaved search evaluation,
        TOIS 30(1), 2012.
        """
        return (self.wins_a + self.ties / 2) / self.questions - 0.5 if self.questions else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of `delta` (Wilson 1927); None without questions. Ties make it rather too wide."""
        if self.delta is None:
            return None
        n, share = self.questions, self.delta + 0.5
        middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
        return middle - half - 0.5, middle + half - 0.5

    @property
    def p_value(self) -> float:
        """Of the two-sided sign test, without ties: how often fair coins give at least this difference."""
        n, fewer = self.wins_a + self.wins_b, min(self.wins_a, self.wins_b)
        tail, term = 0, 1  # The binomial coefficients of n over 0, 1, ...
        for k in range(fewer + 1):
            tail += term
            term = term * (n - k) // (k + 1)
        return float(min(1, 2 * tail / 2**n))

    @property
    def winner(self) -> Team | None:
        """The ranking that is used more; None where the interval holds 0 or the p-value is not below 0.05."""
        if self.interval is None or self.p_value >= _LEVEL or self.interval[0] <= 0 <= self.interval[1]:
            return None
        return Team.A if self.wins_a > self.wins_b else Team.B
