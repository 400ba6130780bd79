"""Diversifying the best hits (MMR)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from retrieval.encoders.pooling import unit_length
from retrieval.engine.about import About, BaseStage
from retrieval.engine.state import Note, SearchState
from retrieval.engine.tunables import Tunables, costly, fraction, tunable
from retrieval.engine.types import Ranking
from retrieval.ranking.fusion import min_max
from retrieval.ranking.signals import SEAT


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DiversifyConfig(Tunables, label="Diversity"):
    """Trade-off between relevance and diversity (MMR)."""

    relevance: float = fraction(0.5, help="MMR's lambda: 1 ranks by relevance only, 0 by diversity only.")
    depth: int = costly(50, low=2, high=200, unit="hits", help="Number of top hits that are compared with each other.")
    min_cosine: float = tunable(
        0.94, low=0.0, high=0.99, unit="cosine", help="Similarity of two passages above which repetition is penalised."
    )
    selected: int = tunable(
        0,
        low=0,
        high=200,
        unit="hits",
        help="Number of hits that MMR selects by similarity; they rank first, ordered by score. With 0 MMR orders the"
        " hits itself.",
    )


@dataclass(frozen=True, slots=True)
class Diversify(BaseStage, name="diversify", needs={"hits", "facts", "order"}, optional=True):
    """Order the head of the ranking by maximal marginal relevance of the stored vectors.

    Nothing is dropped: repetitive hits rank lower. Reserved slots keep their places, and hits that a reranker did not
    score stay behind those that it did.
    """

    config: DiversifyConfig

    about: ClassVar[About] = About(
        "diversified", "Ranks hits lower if they repeat better hits (MMR).", section="diversify"
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the head of its hits diversified."""
        # Only scores of one type can be compared.
        best = state.hits[: self.config.depth]
        head = tuple(takewhile(lambda hit: hit.score_type is best[0].score_type, best))
        if len(head) <= 1 or self.config.relevance == 1:
            return state
        selected = self.config.selected
        worth = [hit.signals.get("similarity", 0.0) for hit in head] if selected else [hit.score for hit in head]
        order = marginal_order(
            min_max(worth),
            _unit_vectors(head),
            balance=self.config.relevance,
            first=sum(SEAT in hit.signals for hit in head),
            min_cosine=self.config.min_cosine,
        )
        # Hits come in the order of their scores.
        order[:selected] = sorted(order[:selected])
        moved = sum(place != now for now, place in enumerate(order))
        notes = (Note("diversified", f"{moved} of {len(head)} hits changed rank."),) if moved else ()
        return replace(state, hits=(*(head[place] for place in order), *state.hits[len(head) :])).noted(*notes)


def _unit_vectors(hits: Ranking) -> NDArray[np.float32]:
    stored = [hit.chunk.vector for hit in hits]
    none = bytes(max(map(len, stored)))
    # As big-endian half floats, as they are stored.
    halves = np.frombuffer(b"".join(vector or none for vector in stored), ">f2")
    return unit_length(halves.astype(np.float32).reshape(len(hits), -1))
