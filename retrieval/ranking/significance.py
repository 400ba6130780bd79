"""Whether one configuration is better than another on the same queries. Free of Django.

A mean over queries differs by chance too. The test asks how often a random exchange of the two values of each query
gives as large a mean difference (Fisher's randomisation test; Smucker, Allan and Carterette, CIKM 2007), the interval
how much the mean varies with the queries (percentile bootstrap; Sakai, SIGIR 2006).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

_SAMPLES: Final = 10_000
_EXACT: Final = 13  #: All exchanges of up to so many queries are tried: 2^13 = 8,192.
_BATCH: Final = 1_000
_SEED: Final = 20_070
_EQUAL: Final = 1e-9  #: Differences up to this are ties.
_LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True)
class Difference:
    """The second configuration's values less the first's, over the queries that both have."""

    queries: int
    mean: float
    low: float  #: The 95 % interval of the mean.
    high: float
    p_value: float  #: Two-sided; 1 where nothing differs.
    wins: int
    ties: int
    losses: int

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out 0: otherwise neither is the winner."""
        return self.low > 0 or self.high < 0


def difference(first: Sequence[float], second: Sequence[float]) -> Difference | None:
    """Return how much greater the second values are than the first, query by query; None without queries.

    Both have one value per query in the same order; raises ValueError otherwise. The same values give the same figures.
    """
    return next(iter(differences(first, [second])), None)


def differences(first: Sequence[float], others: Sequence[Sequence[float]]) -> list[Difference]:
    """Return how much greater each of the others is than the first, as `difference` does; empty without queries.

    The random numbers, which take most of the time, are drawn once for all of them.
    """
    deltas = np.array([[after - before for before, after in zip(first, other, strict=True)] for other in others])
    if not deltas.size:
        return []
    facts = zip(deltas, _intervals(deltas), _p_values(deltas), strict=True)
    return [
        Difference(
            queries=len(row),
            mean=float(row.mean()),
            low=low,
            high=high,
            p_value=p_value,
            wins=int((row > _EQUAL).sum()),
            ties=int((np.abs(row) <= _EQUAL).sum()),
            losses=int((row < -_EQUAL).sum()),
        )
        for row, (low, high), p_value in facts
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for how many there are, in their order (Holm, Scandinavian Journal of Statistics 1979).

    Where none of the configurations differs from the baseline, one of them is below 0.05 in at most 5 % of the cases.
    """
    corrected, least = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = least
    return corrected


def _p_values(deltas: np.ndarray) -> list[float]:
    """Return the shares of exchanges with at least these mean differences; of a sample, the observed one counts too."""
    queries = deltas.shape[1]
    observed = np.abs(deltas.mean(axis=1)) - _EQUAL
    if queries <= _EXACT:
        signs = np.array(list(product((-1.0, 1.0), repeat=queries)))
        return [float(it) for it in (np.abs(signs @ deltas.T / queries) >= observed).mean(axis=0)]
    draw = np.random.default_rng(_SEED)
    extreme = np.ones(len(deltas))
    for _ in range(_SAMPLES // _BATCH):
        signs = draw.integers(0, 2, (_BATCH, queries)) * 2.0 - 1.0
        extreme += (np.abs(signs @ deltas.T / queries) >= observed).sum(axis=0)
    return [float(it) for it in extreme / (_SAMPLES + 1)]


def _intervals(deltas: np.ndarray) -> list[tuple[float, float]]:
    queries, draw = deltas.shape[1], np.random.default_rng(_SEED)
    means: list[list[np.ndarray]] = [[] for _ in deltas]
    for _ in range(_SAMPLES // _BATCH):
        drawn = draw.integers(0, queries, (_BATCH, queries))
        for found, row in zip(means, deltas, strict=True):
            found.append(row[drawn].mean(axis=1))
    tail = (1 - _LEVEL) / 2
    bounds = [np.quantile(np.concatenate(found), (tail, 1 - tail)) for found in means]
    return [(float(low), float(high)) for low, high in bounds]
