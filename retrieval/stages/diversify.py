"""Ordering the best hits so that each says something new."""

from dataclasses import dataclass, replace
from itertools import takewhile
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from retrieval.errors import SearchTimeoutError
from retrieval.fusion import min_max
from retrieval.helix_config import DiversifyConfig
from retrieval.index.pool import vectors_of
from retrieval.index.store import VectorIndex
from retrieval.mmr import marginal_order
from retrieval.signals import SEAT
from retrieval.types import Note, Ranking, SearchState


@dataclass(frozen=True, slots=True)
class Diversify:
    """Order the head of the ranking by maximal marginal relevance, with the vectors that the store has of it.

    Nothing is dropped: what repeats comes later, and what is packed and returned is cut from the end. Seats stay, and
    what a reranker has not seen stays behind what it has.
    """

    config: DiversifyConfig
    index: VectorIndex

    name: ClassVar[str] = "diversify"
    needs: ClassVar[frozenset[str]] = frozenset({"hits", "facts", "order", "scope"})
    gives: ClassVar[frozenset[str]] = frozenset()
    optional: ClassVar[bool] = True

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the head of its hits diversified; as it was, with a note, when the time was up."""
        head = _comparable(state.hits[: self.config.depth])
        if len(head) <= 1 or self.config.relevance == 1:
            return state
        try:
            vectors = self._vectors(head, state)
        except SearchTimeoutError:
            note = Note("diversify_timeout", "No time was left to look for repetition.", degraded=True)
            return replace(state, notes=(*state.notes, note))
        order = marginal_order(
            min_max([hit.score for hit in head]),
            vectors,
            balance=self.config.relevance,
            first=sum(SEAT in hit.signals for hit in head),
            least_cosine=self.config.least_cosine,
        )
        moved = sum(place != now for now, place in enumerate(order))
        notes = (Note("diversified", f"{moved} of {len(head)} hits changed their place."),) if moved else ()
        hits = (*(head[place] for place in order), *state.hits[len(head) :])
        return replace(state, hits=hits, notes=(*state.notes, *notes))

    def _vectors(self, head: Ranking, state: SearchState) -> NDArray[np.float32]:
        """Return the unit vectors of hits, shape (n, dim); zeros for one that has none, which repeats nothing."""
        found = vectors_of(head, index=self.index, scope=state.scope, timeout_seconds=state.deadline.leg_seconds)
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return (found / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _comparable(hits: Ranking) -> Ranking:
    """Return the first hits as far as their scores mean the same."""
    return tuple(takewhile(lambda hit: hit.score_type is hits[0].score_type, hits))
