"""Fusing the primary pool."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, BaseStage
from retrieval.engine.state import DropReason, SearchState, drops_beyond
from retrieval.engine.tunables import Tunables, fraction
from retrieval.presets.consolidated.evidence.scoring import ranking_weights
from retrieval.presets.consolidated.evidence.section_state import SectionState
from retrieval.ranking.fusion import weighted_rank_fusion
from retrieval.stages.fuse import Fuse, FusionConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryConfig(Tunables, label="Primary pool"):
    """How the primary pool is fused."""

    sparse_weight: float = fraction(0.3, help="Weight of the BM25 leg. The weight of the vector leg is 1 minus this.")


@dataclass(frozen=True, slots=True)
class FuseWeighted(BaseStage, name="fuse", needs={"rankings", "section"}, gives={"hits"}):
    """Merge the legs by weighted reciprocal ranks, and limit the pool to the section's over-fetched depth."""

    fusion: FusionConfig
    weights: PrimaryConfig

    about: ClassVar[About] = replace(
        Fuse.about, purpose="Merges the legs' rankings by weighted reciprocal rank fusion into one pool."
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the pool as hits; rephrasings weigh as the question itself."""
        weights = ranking_weights(state.rankings, self.weights.sparse_weight)
        fused = weighted_rank_fusion(state.rankings, weights, rank_constant=self.fusion.rank_constant)
        section = state.part(SectionState)
        limit = section.fetched if section else len(fused)
        drops = drops_beyond(fused, limit, DropReason.OUTSIDE_WINDOW, "fused rank {rank}, window {limit}")
        return replace(state, hits=fused[:limit], drops=(*state.drops, *drops))
