"""The latency budget of `helix`, step by step."""

from dataclasses import dataclass
from typing import Final

from retrieval.presets.helix.stages.diversify import Diversify
from retrieval.presets.helix.stages.expand import Expand
from retrieval.presets.helix.stages.names import LinkEntities
from retrieval.presets.helix.stages.near_duplicates import NearDuplicates
from retrieval.presets.helix.stages.pack import Pack
from retrieval.presets.helix.stages.route import Route
from retrieval.presets.helix.stages.signals import RankSignals
from retrieval.stages.access import CheckAccess
from retrieval.stages.analyze import Analyze
from retrieval.stages.bm25 import Bm25
from retrieval.stages.complete import Complete
from retrieval.stages.dense import Dense
from retrieval.stages.embed import Embed
from retrieval.stages.fuse import Fuse
from retrieval.stages.quality import Quality


@dataclass(frozen=True, slots=True)
class Budget:
    """What one step may take at the 95th percentile, and the names of its stages."""

    step: str
    milliseconds: float
    stages: frozenset[str]


#: For one search over about 10^6 items. BM25 runs in parallel with the vectors; the other stages use the headroom.
BUDGETS: Final = (
    Budget("1 embed", 8.0, frozenset({Embed.name})),
    Budget("2 scope, route", 3.0, frozenset({Analyze.name, Route.name})),
    Budget("3a dense", 25.0, frozenset({Dense.name})),
    Budget("3b bm25", 15.0, frozenset({Bm25.name})),
    Budget("4 fuse", 2.0, frozenset({Fuse.name})),
    Budget("5 graph", 30.0, frozenset({LinkEntities.name, Expand.name})),
    Budget("6 rank", 8.0, frozenset({Complete.name, CheckAccess.name, Quality.name, RankSignals.name})),
    Budget("7 diversity", 10.0, frozenset({NearDuplicates.name, Diversify.name})),
    Budget("8 pack", 6.0, frozenset({Pack.name})),
)
TOTAL_MS: Final = 150.0
