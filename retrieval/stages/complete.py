"""Reading the pool's chunks, and both signals for each of them."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.config import FulltextConfig
from retrieval.index import store
from retrieval.types import Note, SearchState


@dataclass(frozen=True, slots=True)
class Complete:
    """Read every pooled chunk once, with its cosine and full-text score, whichever leg found it.

    The blend compares like with like only when no hit lacks a signal because one leg did not reach it.
    """

    config: FulltextConfig
    index: store.VectorIndex

    name: ClassVar[str] = "complete"
    needs: ClassVar[frozenset[str]] = frozenset({"hits", "vector", "terms", "scope"})
    gives: ClassVar[frozenset[str]] = frozenset({"facts"})
    optional: ClassVar[bool] = False

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with completed hits; those that are gone from the store are left out."""
        if not state.hits:
            return state
        hits = store.complete(
            state.hits,
            vector=state.vector,
            index=self.index,
            terms=state.terms.terms,
            scope=state.scope,
            search=store.TextSearch(tuple(self.config.weights), self.config.saturation),
            timeout_seconds=state.deadline.remaining_seconds,
        )
        gone = len(state.hits) - len(hits)
        notes = (Note("stale_hits", f"{gone} hits were gone from the store."),) if gone else ()
        return replace(state, hits=hits, notes=(*state.notes, *notes))
