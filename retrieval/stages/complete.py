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
            kept=state.filter,
        )
        gone = len(state.hits) - len(hits)
        # Gone, out of scope, or found by a leg that knows no filter: which of these is nobody's to know.
        text = "were left out by the filter, or gone from the store" if state.filter else "were gone from the store"
        notes = (Note("stale_hits", f"{gone} hits {text}."),) if gone else ()
        return replace(state, hits=hits, notes=(*state.notes, *notes))
