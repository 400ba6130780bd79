"""The numbers of the preset `corecube`."""

from dataclasses import dataclass, field
from typing import ClassVar

from retrieval.engine.types import ScoreType
from retrieval.presets.preset import PresetConfig
from retrieval.ranking.blend import BlendConfig
from retrieval.stages.assemble import AssembleConfig
from retrieval.stages.dedupe import DedupeConfig
from retrieval.stages.floor import FloorConfig
from retrieval.stages.rerank import RerankConfig
from retrieval.stages.ties import TieConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class CorecubeConfig(PresetConfig):
    """The numbers of the preset `corecube`."""

    packing: ClassVar[str] = "assemble"

    blend: BlendConfig = field(default_factory=BlendConfig)
    rerank: RerankConfig = field(default_factory=RerankConfig)
    ties: TieConfig = field(default_factory=TieConfig)
    floor: FloorConfig = field(default_factory=FloorConfig)
    dedupe: DedupeConfig = field(default_factory=DedupeConfig)
    assemble: AssembleConfig = field(default_factory=AssembleConfig)

    @property
    def highest_score(self) -> float:
        """The sum of the blend's weights."""
        return self.blend.dense + self.blend.fulltext + self.blend.freshness

    @property
    def tie_tolerance(self) -> float:
        """Scores this close are a tie."""
        return self.ties.tolerance

    def min_score(self, score_type: ScoreType) -> float:
        """Return the floor of a score type; -inf for none."""
        return self.floor.minimum(score_type)
