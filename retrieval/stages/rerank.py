"""The cross-encoder's look at the best of the blend."""

from dataclasses import dataclass
from typing import ClassVar

from retrieval.config import RerankConfig
from retrieval.encoders.reranker import Reranker
from retrieval.types import SearchState


@dataclass(frozen=True, slots=True)
class Rerank:
    """Score each of the best hits jointly with the query; without a reranker the blend's order stands."""

    config: RerankConfig
    reranker: Reranker | None

    name: ClassVar[str] = "rerank"
    needs: ClassVar[frozenset[str]] = frozenset({"query", "hits", "facts", "order"})
    gives: ClassVar[frozenset[str]] = frozenset()
    optional: ClassVar[bool] = True

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with its best hits in the reranker's order."""
        return state
