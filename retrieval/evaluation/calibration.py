"""Measures of a confidence: discrimination of answerable questions (AUROC) and calibration. Pure."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.bool_]

BINS: Final = 10
_RESAMPLES: Final = 1000
_SEED: Final = 20


@dataclass(frozen=True, slots=True)
class Bin:
    """The questions with a confidence between two bounds."""

    low: float
    high: float
    count: int
    confidence: float  #: Mean confidence, and share of answerable questions.
    answerable: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with the bounds of its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


def auroc(confidences: Floats, answerable: Labels) -> float:
    """Return the share of pairs in which the answerable question has the higher confidence; ties count half.

    The area under the ROC curve by the Mann-Whitney U statistic. Expects questions of both kinds.
    """
    order = np.argsort(confidences, kind="stable")
    _, inverse, counts = np.unique(confidences[order], return_inverse=True, return_counts=True)
    # Equal values share the mean of their ranks.
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[inverse]
    positive = answerable[order]
    count, others = int(positive.sum()), int((~positive).sum())
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * others))


def reliability(confidences: Floats, answerable: Labels, weights: Floats | None = None) -> tuple[Bin, ...]:
    """Return the non-empty bins of equal width; 1 belongs to the last."""
    weights = np.ones(len(confidences)) if weights is None else weights
    places = np.minimum((confidences * BINS).astype(int), BINS - 1)
    return tuple(
        Bin(
            low=place / BINS,
            high=(place + 1) / BINS,
            count=int((places == place).sum()),
            confidence=float(np.average(confidences[places == place], weights=weights[places == place])),
            answerable=float(np.average(answerable[places == place], weights=weights[places == place])),
        )
        for place in range(BINS)
        if (places == place).any()
    )


def calibration_error(confidences: Floats, answerable: Labels, weights: Floats | None = None) -> float:
    """Return the expected calibration error: the mean over questions of their bin's |confidence - answerable|.

    Ten bins of equal width. Naeini, Cooper and Hauskrecht, AAAI 2015.
    """
    weights = np.ones(len(confidences)) if weights is None else weights
    places = np.minimum((confidences * BINS).astype(int), BINS - 1)
    gaps = np.bincount(places, weights * (confidences - answerable), minlength=BINS)
    return float(np.abs(gaps).sum() / weights.sum())


def bootstrap(figure: Callable[[NDArray[np.intp]], float], answerable: Labels) -> Interval:
    """Return a figure with its interval, resampled within each kind; `figure` gets the indices of the questions."""
    random = np.random.default_rng(_SEED)
    kinds = [np.flatnonzero(answerable), np.flatnonzero(~answerable)]
    drawn = [
        figure(np.concatenate([random.choice(places, len(places)) for places in kinds if len(places)]))
        for _ in range(_RESAMPLES)
    ]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(figure(np.arange(len(answerable))), float(low), float(high))


def folds(groups: Sequence[Hashable], count: int) -> NDArray[np.intp]:
    """Return each question's fold, 0 to `count` - 1: a group is in one fold, and folds have about the same size.

    Groups are assigned largest first to the smallest fold; groups of one size in the order of their first member.
    """
    filled = [0] * count
    fold_of: dict[Hashable, int] = {}
    for group, size in Counter(groups).most_common():
        fold_of[group] = filled.index(min(filled))
        filled[fold_of[group]] += size
    return np.array([fold_of[group] for group in groups])
