"""The numbers of the preset `helix`."""

from dataclasses import dataclass, field
from typing import ClassVar

from retrieval.engine.tunables import costly
from retrieval.engine.types import MemoryType
from retrieval.presets.helix.expansion import GraphConfig
from retrieval.presets.helix.optional_rerank import OptionalRerankConfig
from retrieval.presets.helix.stages.diversify import DiversifyConfig
from retrieval.presets.helix.stages.near_duplicates import NearDuplicatesConfig
from retrieval.presets.helix.stages.pack import PackConfig
from retrieval.presets.helix.stages.route import RouteConfig
from retrieval.presets.helix.stages.signals import SignalsConfig
from retrieval.presets.helix.stages.sparse import SparseConfig
from retrieval.presets.preset import PresetConfig
from retrieval.ranking.answerability.verdict import AnswerabilityConfig
from retrieval.stages.bm25 import Bm25Config
from retrieval.stages.fuse import FusionConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class HelixConfig(PresetConfig):
    """The numbers of the preset `helix`."""

    packing: ClassVar[str] = "pack"

    deadline_ms: int = costly(500, low=50, high=600_000, unit="ms", help="Time limit of one search.")
    fusion: FusionConfig = field(default_factory=lambda: FusionConfig(pool=100))
    answerability: AnswerabilityConfig = field(default_factory=lambda: AnswerabilityConfig(sentences=0))
    route: RouteConfig = field(default_factory=RouteConfig)
    bm25: Bm25Config = field(default_factory=Bm25Config)
    sparse: SparseConfig = field(default_factory=SparseConfig)
    graph: GraphConfig = field(default_factory=GraphConfig)
    signals: SignalsConfig = field(default_factory=SignalsConfig)
    rerank: OptionalRerankConfig = field(default_factory=OptionalRerankConfig)
    near_duplicates: NearDuplicatesConfig = field(default_factory=NearDuplicatesConfig)
    diversify: DiversifyConfig = field(default_factory=DiversifyConfig)
    pack: PackConfig = field(default_factory=PackConfig)

    @property
    def highest_score(self) -> float:
        """The greatest sum of a memory type's weights."""
        return max(sum(self.signals.of(it).values().values()) for it in MemoryType)

    @property
    def queued_seconds(self) -> float:
        """Seconds that the tier "async" adds to the time limit, for the reranker."""
        return self.rerank.queued_ms / 1000 if self.rerank.queued_candidates else 0.0
