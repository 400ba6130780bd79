"""What people's use of passages says about them, corrected for the places where they were shown. Free of Django.

Position-based model: a passage is used if its place is examined and the passage is useful, independently of each other
(Craswell, Zoeter, Taylor and Ramsey, WSDM 2008). So each use counts by the inverse of the probability that its place is
examined (Joachims, Swaminathan and Schnabel, WSDM 2017).
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

MIN_PEOPLE: Final = 3  #: Fewer would let a grade say what one person opened.
MIN_SHOWINGS: Final = 5
_MIN_EXAMINED: Final = 0.3  #: Smaller probabilities count as this, so that no use weighs more than 3.3 times.
_ROUNDS: Final = 100
_PRIOR_SHOWINGS: Final = 10  #: The prior of a place weighs as much as so many showings.
_OPENED, _COPIED, _RATED = 1, 2, 3  #: What a use is worth, in grades.
_MAX_GRADE: Final = 3


class Place(NamedTuple):
    """Where a passage was shown."""

    surface: str
    position: int  #: From 1.

    @property
    def prior(self) -> float:
        """How probable it is that the place is examined, as long as nothing else is known."""
        return 1 / self.position


@dataclass(frozen=True, slots=True)
class Counts:
    """How often a passage was shown at one place for one query, and how often it was used there."""

    passage: Hashable  #: With its query.
    place: Place
    shown: int
    used: int


@dataclass(frozen=True, slots=True)
class Showing:
    """A passage, shown once for a query."""

    person: int
    place: Place
    opened: bool = False
    copied: bool = False  #: In an answer that cites it.
    rating: int | None = None  #: A thumb: 1 or -1.

    @property
    def value(self) -> int:
        """What its use is worth."""
        return use_value(opened=self.opened, copied=self.copied, rating=self.rating)


def use_value(*, opened: bool, copied: bool, rating: int | None) -> int:
    """Return what a use is worth, -3 to 3: a thumb before a copy before an opening."""
    if rating is not None:
        return rating * _RATED
    return _COPIED if copied else _OPENED * opened


def examination(counts: Sequence[Counts], *, rounds: int = _ROUNDS) -> dict[Place, float]:
    """Return the probability that each place is examined, by expectation maximisation.

    The formulas are those of Chuklin, Markov and de Rijke, Click Models for Web Search, 2015, with priors: a place has
    1 / position, weighing as much as ten showings, and a passage is as likely useful as not, weighing two. The first
    position of a surface counts as always examined, since only the ratios of the probabilities are known.
    """
    places = sorted({it.place for it in counts})
    passages = {passage: number for number, passage in enumerate(dict.fromkeys(it.passage for it in counts))}
    rank = {place: number for number, place in enumerate(places)}
    at, of = np.array([rank[it.place] for it in counts], int), np.array([passages[it.passage] for it in counts], int)
    shown, used = np.array([it.shown for it in counts], float), np.array([it.used for it in counts], float)
    prior, is_first = np.array([it.prior for it in places]), np.array([it.position == 1 for it in places], bool)
    examined, useful = prior, np.full(len(passages), 0.5)
    for _ in range(rounds):
        seen, good = examined[at], useful[of]
        unused = (shown - used) / (1 - seen * good)
        expected_seen, expected_good = used + unused * seen * (1 - good), used + unused * good * (1 - seen)
        pooled = np.bincount(at, expected_seen, len(places)) + _PRIOR_SHOWINGS * prior
        examined = np.where(is_first, 1.0, pooled / (np.bincount(at, shown, len(places)) + _PRIOR_SHOWINGS))
        useful = (np.bincount(of, expected_good, len(passages)) + 1) / (np.bincount(of, shown, len(passages)) + 2)
    return dict(zip(places, examined.tolist(), strict=True))


def use_grade(showings: Sequence[Showing], examined: Mapping[Place, float]) -> int | None:
    """Return the grade, 0 to 3, that the showings of a passage for a query give; None for too few of them.

    It is the mean value of a showing to somebody who examines it, rounded. Each person counts once, however often the
    passage was shown to them.
    """
    values = defaultdict(list)
    for it in showings:
        values[it.person].append(it.value / max(examined.get(it.place, it.place.prior), _MIN_EXAMINED))
    if len(values) < MIN_PEOPLE or len(showings) < MIN_SHOWINGS:
        return None
    mean = fmean(fmean(own) for own in values.values())
    return min(_MAX_GRADE, max(0, math.floor(mean + 0.5)))
