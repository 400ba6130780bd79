"""Leaving out what scores too low."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About
from retrieval.engine.config import FloorConfig
from retrieval.engine.state import Drop, DropReason, SearchState


@dataclass(frozen=True, slots=True)
class Floor:
    """Drop hits below the least score of their score's type: a fallback to another score brings its own floor."""

    config: FloorConfig

    name: ClassVar[str] = "floor"
    needs: ClassVar[frozenset[str]] = frozenset({"hits", "order"})
    gives: ClassVar[frozenset[str]] = frozenset()
    optional: ClassVar[bool] = False
    about: ClassVar[About] = About("floor", "Drops hits below the least score of their score's type.", section="floor")

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state without hits under their floor."""
        kept = tuple(hit for hit in state.hits if hit.score >= self.config.minimum(hit.score_type))
        drops = tuple(
            Drop(
                hit.chunk_id,
                DropReason.BELOW_FLOOR,
                f"{hit.score_type} {hit.score:.3f}, floor {self.config.minimum(hit.score_type):.3f}",
                {"score": hit.score, "floor": self.config.minimum(hit.score_type)},
            )
            for hit in state.hits
            if hit.score < self.config.minimum(hit.score_type)
        )
        return replace(state, hits=kept, drops=(*state.drops, *drops))
