"""How well people who grade the same passages agree, beyond chance. Free of Django."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well two or more raters agree on the passages that at least two of them graded."""

    passages: int
    #: 1 for full agreement, 0 for as much as chance gives, negative for less; None where one grade is the only one.
    kappa: float | None


def cohen(pairs: Sequence[tuple[int, int]]) -> Agreement:
    """Return Cohen's kappa of two raters with quadratic weights, as grades are ordered: 0 against 3 weighs most.

    Each pair holds both raters' grades of a passage (Cohen, Psychological Bulletin 70, 1968).
    """
    size = len(pairs)
    first, second = (Counter(pair[side] for pair in pairs) for side in (0, 1))
    observed = sum((one - other) ** 2 for one, other in pairs) * size
    expected = sum((one - other) ** 2 * first[one] * second[other] for one in first for other in second)
    return Agreement(size, 1 - observed / expected if expected else None)


def fleiss(passages: Sequence[Sequence[int]]) -> Agreement:
    """Return Fleiss' kappa of any number of raters per passage, without weights.

    Passages with one grade are left out. With numbers that differ, each passage's agreement is the share of its pairs
    of raters that agree (Fleiss, Psychological Bulletin 76, 1971).
    """
    shared = [grades for grades in passages if len(grades) > 1]
    if not shared:
        return Agreement(0, None)
    observed = sum(_agreeing(grades) for grades in shared) / len(shared)
    counts = Counter(grade for grades in shared for grade in grades)
    expected = sum((number / counts.total()) ** 2 for number in counts.values())
    return Agreement(len(shared), (observed - expected) / (1 - expected) if expected < 1 else None)


def _agreeing(grades: Sequence[int]) -> float:
    pairs = list(combinations(grades, 2))
    return sum(one == other for one, other in pairs) / len(pairs)
