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
    deltas = np.array([after - before for before, after in zip(first, second, strict=True)])
    if not len(deltas):
        return None
    low, high = _interval(deltas)
    return Difference(
        queries=len(deltas),
        mean=float(deltas.mean()),
        low=low,
        high=high,
        p_value=_p_value(deltas),
        wins=int((deltas > _EQUAL).sum()),
        ties=int((np.abs(deltas) <= _EQUAL).sum()),
        losses=int((deltas < -_EQUAL).sum()),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for how many there are, in their order (Holm, Scandinavian Journal of Statistics 1979).

    Where none of the configurations differs from the baseline, one of them is below 0.05 in at most 5 % of the cases.
    """
    corrected, least = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = least
    return corrected


def _p_value(deltas: np.ndarray) -> float:
    """Return the share of exchanges with at least this mean difference; of a sample, the observed one counts too."""
    observed = abs(deltas.mean()) - _EQUAL
    if len(deltas) <= _EXACT:
        signs = np.array(list(product((-1.0, 1.0), repeat=len(deltas))))
        return float((np.abs(signs @ deltas / len(deltas)) >= observed).mean())
    draw = np.random.default_rng(_SEED)
    extreme = 1
    for _ in range(_SAMPLES // _BATCH):
        signs = draw.integers(0, 2, (_BATCH, len(deltas))) * 2.0 - 1.0
        extreme += int((np.abs(signs @ deltas / len(deltas)) >= observed).sum())
    return extreme / (_SAMPLES + 1)


def _interval(deltas: np.ndarray) -> tuple[float, float]:
    draw = np.random.default_rng(_SEED)
    means = np.concatenate(
        [deltas[draw.integers(0, len(deltas), (_BATCH, len(deltas)))].mean(axis=1) for _ in range(_SAMPLES // _BATCH)]
    )
    tail = (1 - _LEVEL) / 2
    low, high = np.quantile(means, (tail, 1 - tail))
    return float(low), float(high)
