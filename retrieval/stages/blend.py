"""Ordering the pool."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.config import BlendConfig
from retrieval.ranking import blend, break_ties
from retrieval.types import SearchState


@dataclass(frozen=True, slots=True)
class Blend:
    """Order the pool by weighted cosine, full-text relevance and freshness; trust decides near-ties."""

    config: BlendConfig

    name: ClassVar[str] = "blend"
    needs: ClassVar[frozenset[str]] = frozenset({"hits", "facts", "freshness", "scope"})
    gives: ClassVar[frozenset[str]] = frozenset({"order"})
    optional: ClassVar[bool] = False

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with hits in their final order."""
        trust = {inclusion.connection.id: inclusion.connection.trust for inclusion in state.scope.included}
        hits = break_ties(
            blend(state.hits, self.config),
            trust=lambda hit: trust[hit.chunk.connection_id],
            tolerance=self.config.tie_tolerance,
        )
        return replace(state, hits=hits)
