"""The latency budget of the preset `helix`, stage by stage, and what was taken of it. No Django."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from retrieval.engine.state import Span
from retrieval.evaluation.latency import Percentiles, percentiles


@dataclass(frozen=True, slots=True)
class Budget:
    """What one step may take at the 95th percentile, and the stages that it is made of."""

    step: str
    milliseconds: float
    stages: frozenset[str]


#: For one search over about 10^6 items. BM25 runs beside the vectors; whatever no step names lives on the headroom.
BUDGETS: Final = (
    Budget("1 embed", 8.0, frozenset({"embed"})),
    Budget("2 scope, route", 3.0, frozenset({"analyze", "route"})),
    Budget("3a dense", 25.0, frozenset({"dense"})),
    Budget("3b bm25", 15.0, frozenset({"bm25"})),
    Budget("4 fuse", 2.0, frozenset({"fuse"})),
    Budget("5 graph", 30.0, frozenset({"names", "expand"})),
    Budget("6 rank", 8.0, frozenset({"complete", "access", "quality", "signals"})),
    Budget("7 diversity", 10.0, frozenset({"near_duplicates", "diversify"})),
    Budget("8 pack", 6.0, frozenset({"pack"})),
)
TOTAL_MS: Final = 150.0
_NAMED: Final = frozenset().union(*(budget.stages for budget in BUDGETS))
#: Runs other stages, whose spans stand beside it.
_LEGS: Final = "legs"


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """What a step took, of what it may take; None for what has no budget of its own."""

    step: str
    budget_ms: float | None
    taken_ms: Percentiles

    @property
    def is_kept(self) -> bool:
        """Whether the 95th percentile stays within the budget."""
        return self.budget_ms is None or self.taken_ms["p95"] <= self.budget_ms


def against_budget(totals: Sequence[float], traces: Iterable[Sequence[Span]]) -> tuple[BudgetRow, ...]:
    """Return what each step of the searches took, the stages without a budget together, and the whole."""
    searches = list(traces)
    rows = [BudgetRow(it.step, it.milliseconds, percentiles(_sums(searches, it.stages))) for it in BUDGETS]
    others = {span.stage for trace in searches for span in trace} - _NAMED - {_LEGS}
    return (
        *rows,
        BudgetRow("other stages", None, percentiles(_sums(searches, frozenset(others)))),
        BudgetRow("total", TOTAL_MS, percentiles(totals)),
    )


def _sums(searches: Iterable[Sequence[Span]], stages: frozenset[str]) -> list[float]:
    """Return the milliseconds that each search spent in the stages."""
    return [sum(span.seconds for span in trace if span.stage in stages) * 1000 for trace in searches]
