"""Ordering the pool."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.config import BlendConfig
from retrieval.ranking import blend
from retrieval.types import SearchState


@dataclass(frozen=True, slots=True)
class Blend:
    """Order the pool by weighted cosine, full-text relevance and freshness."""

    config: BlendConfig

    name: ClassVar[str] = "blend"
    needs: ClassVar[frozenset[str]] = frozenset({"hits", "facts", "freshness"})
    gives: ClassVar[frozenset[str]] = frozenset({"order"})
    optional: ClassVar[bool] = False

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with its hits blended, best first."""
        return replace(state, hits=blend(state.hits, self.config))
