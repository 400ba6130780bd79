"""Removing near duplicates."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, BaseStage
from retrieval.engine.state import DropReason, SearchState
from retrieval.engine.tunables import Tunables, tunable
from retrieval.ranking.near_duplicates import drop_by_signature


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicatesConfig(Tunables, label="Near duplicates"):
    """When two texts are near duplicates."""

    min_similarity: float = tunable(
        0.8, low=0.5, high=1.0, help="Estimated Jaccard similarity from which texts are near duplicates."
    )


@dataclass(frozen=True, slots=True)
class NearDuplicates(BaseStage, name="near_duplicates", needs={"hits", "facts", "order"}):
    """Keep the best ranked of several hits with nearly the same words, by the MinHash signatures made at ingest."""

    config: NearDuplicatesConfig

    about: ClassVar[About] = About(
        "deduped",
        "Removes near-duplicate chunks and retains the highest-ranked one.",
        section="near_duplicates",
        drops=(DropReason.DUPLICATE,),
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state without near duplicates."""
        hits, drops = drop_by_signature(state.hits, min_similarity=self.config.min_similarity)
        return replace(state, hits=hits, drops=(*state.drops, *drops))
