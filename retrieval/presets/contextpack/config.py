"""The numbers of the preset `contextpack`."""

from dataclasses import dataclass, field
from typing import ClassVar

from retrieval.engine.tunables import costly
from retrieval.presets.contextpack.judge import RelevanceConfig
from retrieval.presets.contextpack.stages.neighbours import NeighboursConfig
from retrieval.presets.contextpack.stages.pack_context import ContextConfig
from retrieval.presets.preset import PresetConfig
from retrieval.ranking.blend import BlendConfig
from retrieval.stages.dedupe import DedupeConfig
from retrieval.stages.fuse import FusionConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPackConfig(PresetConfig):
    """The numbers of the preset `contextpack`."""

    packing: ClassVar[str] = "context"

    deadline_ms: int = costly(30_000, low=50, high=600_000, unit="ms", help="Time limit of one search.")
    fusion: FusionConfig = field(default_factory=lambda: FusionConfig(pool=50))
    blend: BlendConfig = field(default_factory=BlendConfig)
    dedupe: DedupeConfig = field(default_factory=DedupeConfig)
    relevance: RelevanceConfig = field(default_factory=RelevanceConfig)
    neighbours: NeighboursConfig = field(default_factory=NeighboursConfig)
    context: ContextConfig = field(default_factory=ContextConfig)

    @property
    def default_top_k(self) -> int:
        """As many hits as are packed."""
        return self.relevance.top

    @property
    def highest_score(self) -> float:
        """The top of the rubric."""
        return 100.0
