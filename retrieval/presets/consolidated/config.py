"""The numbers of the preset `consolidated`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from retrieval.engine.tunables import costly
from retrieval.presets.consolidated.evidence.cascade import CascadeConfig
from retrieval.presets.consolidated.evidence.density import DensityConfig
from retrieval.presets.consolidated.evidence.depth import DepthConfig, GradeConfig
from retrieval.presets.consolidated.evidence.order import FairnessConfig, PrecedenceConfig, QuotaConfig
from retrieval.presets.consolidated.evidence.rerank_guard import BreakerConfig
from retrieval.presets.consolidated.evidence.scoring import RerankPlanConfig, SemanticBm25Config, ranking_weights
from retrieval.presets.consolidated.stages.chunk_retry import RetryConfig
from retrieval.presets.consolidated.stages.fuse import PrimaryConfig
from retrieval.presets.consolidated.stages.setup import QuestionConfig
from retrieval.presets.consolidated.stages.sources import SourceRecoveryConfig
from retrieval.presets.consolidated.stages.structure import StructureConfig
from retrieval.presets.preset import PresetConfig
from retrieval.stages.assemble import AssembleConfig
from retrieval.stages.bm25 import Bm25Config
from retrieval.stages.dedupe import DedupeConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidatedConfig(PresetConfig):
    """The numbers of the preset `consolidated`; those of a section are in its section set."""

    packing: ClassVar[str] = "assemble"
    #: A section's depth sets the size of its pool, and its quality floor the minimum quality.
    unused: ClassVar[frozenset[str]] = frozenset({"fusion.pool", "quality.minimum"})

    deadline_ms: int = costly(20_000, low=50, high=600_000, unit="ms", help="Time limit of one search.")
    bm25: Bm25Config = field(default_factory=Bm25Config)
    question: QuestionConfig = field(default_factory=QuestionConfig)
    depth: DepthConfig = field(default_factory=DepthConfig)
    structure: StructureConfig = field(default_factory=StructureConfig)
    primary: PrimaryConfig = field(default_factory=PrimaryConfig)
    grades: GradeConfig = field(default_factory=GradeConfig)
    quota: QuotaConfig = field(default_factory=QuotaConfig)
    retry: RetryConfig = field(default_factory=RetryConfig)
    cascade: CascadeConfig = field(default_factory=CascadeConfig)
    sources: SourceRecoveryConfig = field(default_factory=SourceRecoveryConfig)
    dedupe: DedupeConfig = field(default_factory=DedupeConfig)
    density: DensityConfig = field(default_factory=DensityConfig)
    rerank: RerankPlanConfig = field(default_factory=RerankPlanConfig)
    breaker: BreakerConfig = field(default_factory=BreakerConfig)
    semantic_bm25: SemanticBm25Config = field(default_factory=SemanticBm25Config)
    precedence: PrecedenceConfig = field(default_factory=PrecedenceConfig)
    fairness: FairnessConfig = field(default_factory=FairnessConfig)
    assemble: AssembleConfig = field(default_factory=lambda: AssembleConfig(budget_tokens=12_000))

    def ranking_weights(self, names: Iterable[str]) -> Mapping[str, float]:
        """Return the weight of each ranking: that of its leg."""
        return ranking_weights(names, self.primary.sparse_weight)
