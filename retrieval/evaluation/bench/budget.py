"""Latency of the steps of the preset `helix` against their budgets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from retrieval.engine.pipeline import Legs
from retrieval.engine.state import Span
from retrieval.evaluation.latency import Percentiles, percentiles
from retrieval.presets.helix.latency_budget import BUDGETS, TOTAL_MS

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
