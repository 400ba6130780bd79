"""Latency of the steps of the preset `helix` against their budgets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from retrieval.engine.pipeline import Legs
from retrieval.engine.state import Span
from retrieval.evaluation.latency import Percentiles, percentiles
from retrieval.presets.helix.stages.associate import Associate
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

TOTAL_MS: Final = 150.0


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
    Budget("5 graph", 30.0, frozenset({LinkEntities.name, Expand.name, Associate.name})),
    Budget("6 rank", 8.0, frozenset({Complete.name, CheckAccess.name, Quality.name, RankSignals.name})),
    Budget("7 diversity", 10.0, frozenset({NearDuplicates.name, Diversify.name})),
    Budget("8 pack", 6.0, frozenset({Pack.name})),
)


_NAMED: Final = frozenset().union(*(budget.stages for budget in BUDGETS))


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """The latency of a step against its budget; None for no budget."""

    step: str
    budget_ms: float | None
    taken_ms: Percentiles

    @property
    def is_kept(self) -> bool:
        """Whether the 95th percentile stays within the budget."""
        return self.budget_ms is None or self.taken_ms["p95"] <= self.budget_ms


def against_budget(totals: Sequence[float], traces: Iterable[Sequence[Span]]) -> tuple[BudgetRow, ...]:
    """Return the latency of each step, of all stages without a budget, and of the complete search."""
    searches = list(traces)
    rows = [BudgetRow(it.step, it.milliseconds, percentiles(_sums(searches, it.stages))) for it in BUDGETS]
    others = {span.stage for trace in searches for span in trace} - _NAMED - {Legs.name}
    return (
        *rows,
        BudgetRow("other stages", None, percentiles(_sums(searches, frozenset(others)))),
        BudgetRow("total", TOTAL_MS, percentiles(totals)),
    )


def _sums(searches: Iterable[Sequence[Span]], stages: frozenset[str]) -> list[float]:
    return [sum(span.seconds for span in trace if span.stage in stages) * 1000 for trace in searches]
