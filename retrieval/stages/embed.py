"""Turning the query into a vector."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.encoders import Encoder
from retrieval.types import SearchState


@dataclass(frozen=True, slots=True)
class Embed:
    """Embed the query with the model that embedded the chunks."""

    encoder: Encoder

    name: ClassVar[str] = "embed"
    needs: ClassVar[frozenset[str]] = frozenset({"query"})
    gives: ClassVar[frozenset[str]] = frozenset({"vector"})
    optional: ClassVar[bool] = False

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the query's unit vector."""
        return replace(state, vector=self.encoder.encode_query(state.query.retrieval_text))
