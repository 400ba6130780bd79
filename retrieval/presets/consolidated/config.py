"""The numbers of the preset `consolidated`."""

from dataclasses import dataclass, field
from typing import ClassVar

from retrieval.engine.config import AssembleConfig, Bm25Config, DedupeConfig, PresetConfig
from retrieval.engine.tunables import Tunables, tunable
from retrieval.presets.consolidated.evidence.config import (
    BreakerConfig,
    CascadeConfig,
    DensityConfig,
    DepthConfig,
    FairnessConfig,
    GradeConfig,
    PrecedenceConfig,
    PrimaryConfig,
    QuotaConfig,
    RerankPlanConfig,
    SemanticBm25Config,
    SourceRecoveryConfig,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionConfig(Tunables):
    """The policy of a question that belongs to no section."""

    complexity: int = tunable(
        20, low=1, high=100, unit="chunks", help="Chunks that a plain question asks for.", at_most="cap"
    )
    cap: int = tunable(60, low=8, high=200, unit="chunks", help="Chunks that it never asks for more than.", costs=True)
    score_floor: float = tunable(
        0.18, low=0.0, high=1.0, unit="nearness", help="Least nearness of a chunk to the query."
    )
    quality_floor: float = tunable(0.25, low=0.0, high=1.0, unit="", help="Least quality of a chunk.")


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureConfig(Tunables):
    """Routing by headings, before the primary pool."""

    headings: int = tunable(
        8, low=0, high=50, unit="headings", help="Parts of documents that headings point to; 0 leaves it out."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryConfig(Tunables):
    """Asking again without the section's own filters, and beyond the request's documents."""

    below: int = tunable(
        3, low=0, high=50, unit="chunks", help="A pool with fewer chunks is asked for again without them; 0 never."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidatedConfig(PresetConfig):
    """The numbers of the preset `consolidated`; those of a section stand in its section set."""

    #: A section's depth says how large its pool is, and its own floor what counts as boilerplate.
    unused: ClassVar[frozenset[str]] = frozenset({"fusion.pool", "quality.minimum"})

    deadline_ms: int = tunable(20_000, low=50, high=600_000, unit="ms", help="Time one search may take.", costs=True)
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

    @property
    def budget(self) -> tuple[str, int]:
        """The tunable that bounds the context, and its tokens."""
        return "assemble.budget_tokens", self.assemble.budget_tokens
