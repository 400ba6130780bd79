"""Fusing the legs' rankings into one pool."""

from dataclasses import dataclass, replace
from typing import ClassVar

from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.state import DropReason, SearchState, drops_beyond
from retrieval.engine.tunables import Tunables, costly, tunable
from retrieval.ranking.fusion import reciprocal_rank_fusion


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionConfig(Tunables):
    """How the rankings of the legs are merged into one pool."""

    rank_constant: int = tunable(60, low=1, high=1000, unit="ranks", help="k of RRF; if larger, top ranks count less.")
    pool: int = costly(160, low=1, high=2000, unit="hits", help="Maximum number of fused hits in the pool.")


@dataclass(frozen=True, slots=True)
class Fuse(BaseStage, name="fuse", needs={"rankings"}, gives={"hits"}):
    """Merge the legs' rankings by reciprocal rank fusion and keep the best as the pool."""

    config: FusionConfig

    about: ClassVar[About] = About(
        "fused",
        "Merges the legs' rankings by reciprocal rank fusion into one pool.",
        group=StageGroup.MERGE,
        section="fusion",
        drops=(DropReason.OUTSIDE_WINDOW,),
        window="fusion.pool",
        fact=lambda hit, config: (
            f"RRF {hit.score:.5f}" + ("" if "fusion.pool" in config.unused else f", pool {config.fusion.pool:,}")
        ),
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the pool as hits."""
        fused = reciprocal_rank_fusion(state.rankings, rank_constant=self.config.rank_constant)
        drops = drops_beyond(fused, self.config.pool, DropReason.OUTSIDE_WINDOW, "fused rank {rank}, window {limit}")
        return replace(state, hits=fused[: self.config.pool], drops=(*state.drops, *drops))
