"""Ordering hits so that each says something new: maximal marginal relevance. Pure."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def marginal_order(
    relevance: Sequence[float], vectors: NDArray[np.float32], *, balance: float, first: int = 0, min_cosine: float = 0.0
) -> list[int]:
    """Return the places of hits in MMR order.

    Each time the greatest balance * relevance - (1 - balance) * repetition. `relevance` lies between 0 and 1.
    Repetition is the highest cosine with a selected hit, scaled so that `min_cosine` and less count 0 and 1 counts 1.
    `vectors` are unit vectors, shape (n, dim), zeros for a hit without one. The first `first` places stay in
    front; ties go to the earlier place. Carbonell and Goldstein, SIGIR 1998.
    """
    cosines = (np.clip(vectors @ vectors.T, min_cosine, 1.0) - min_cosine) / max(1e-9, 1.0 - min_cosine)
    worth = balance * np.asarray(relevance, dtype=np.float64)
    selected = list(range(min(first, len(worth))))
    repeated = cosines[selected].max(axis=0) if selected else np.zeros(len(worth))
    left = np.ones(len(worth), dtype=bool)
    left[selected] = False
    while left.any():
        gain = np.where(left, worth - (1 - balance) * repeated, -np.inf)
        best = int(np.argmax(gain))
        selected.append(best)
        left[best] = False
        repeated = np.maximum(repeated, cosines[best])
    return selected
