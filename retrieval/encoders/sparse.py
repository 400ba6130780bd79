"""Learned sparse vectors: what a model makes of the words of its vocabulary, and how much of it is kept. Pure."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Weights of some words of a vocabulary, each above 0."""

    #: Words of the vocabulary.
    dim: int
    #: Places in the vocabulary, from 0, ascending.
    places: tuple[int, ...]
    weights: tuple[float, ...]

    def to_text(self) -> str:
        """Return it as pgvector writes it: places from 1."""
        told = (f"{place + 1}:{weight:.6g}" for place, weight in zip(self.places, self.weights, strict=True))
        return f"{{{','.join(told)}}}/{self.dim}"


def splade_weights(logits: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the weight of each word of the vocabulary for a text: (tokens, words) -> (words,), each at least 0.

    The maximum over the tokens that `mask` keeps of ln(1 + max(0, logit)). Formal et al., SPLADE v2, 2021.
    """
    kept = logits[mask.astype(bool)]
    weights: NDArray[np.float32] = np.log1p(np.maximum(kept, 0)).max(axis=0).astype(np.float32)
    return weights


def heaviest(weights: NDArray[np.float32], limit: int) -> SparseVector:
    """Return the heaviest words, at most so many, the lower place among equals; those without weight are left out."""
    order = np.lexsort((np.arange(len(weights)), -weights))[:limit]
    places = np.sort(order[weights[order] > 0])
    return SparseVector(len(weights), tuple(places.tolist()), tuple(weights[places].tolist()))
