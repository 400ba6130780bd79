"""Removing repeated text."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, BaseStage
from retrieval.engine.state import DropReason, SearchState
from retrieval.engine.tunables import Tunables, tunable
from retrieval.engine.types import Hit
from retrieval.ranking.near_duplicates import drop_by_words


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupeConfig(Tunables, label="Duplicates"):
    """When two texts are duplicates."""

    min_similarity: float = tunable(
        0.9, low=0.5, high=1.0, help="Minimum share of word sequences (shingles) that two duplicates have in common."
    )


@dataclass(frozen=True, slots=True)
class Dedupe(BaseStage, name="dedupe", needs={"hits", "facts", "freshness"}):
    """Keep one of several chunks with the same or nearly the same text: the most trusted, then the freshest."""

    config: DedupeConfig
    #: Near duplicates are searched among at least this many of the best hits, for a later stage that reorders them.
    min_window: int = 0

    about: ClassVar[About] = About(
        "deduped",
        "Removes near-duplicate chunks and retains the most trusted one, then the freshest.",
        section="dedupe",
        drops=(DropReason.DUPLICATE,),
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state without duplicates."""

        def preference(hit: Hit) -> tuple[float, ...]:
            trust = state.scope.inclusion(hit.chunk.connection_id).connection.trust
            return (trust, hit.signals["freshness"])

        hits, drops = drop_by_words(
            state.hits,
            preference=preference,
            min_similarity=self.config.min_similarity,
            top_k=max(state.top_k, self.min_window),
        )
        return replace(state, hits=hits, drops=(*state.drops, *drops))
