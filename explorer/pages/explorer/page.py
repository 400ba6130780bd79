"""The panels of one search, computed from its outcome."""

from dataclasses import dataclass
from uuid import UUID

from explorer import wording
from explorer.charts.chart import Chart
from explorer.charts.contributions import contributions
from explorer.charts.scores import score_charts
from explorer.charts.waterfall import waterfall
from explorer.components.answerability import AnswerabilityPanel, answerability_panel
from explorer.components.badges import Badge, badges
from explorer.components.context import ContextPanel, context_panel
from explorer.components.drops import ChunkLabels
from explorer.components.funnel import Funnel, funnel
from explorer.components.preset_numbers import version_label
from explorer.components.timeline import TraceRow, span_rows
from explorer.pages.explorer.hits import HitRow, hit_rows
from retrieval.search.outcome import SearchOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPanels:
    """The panels of one search."""

    trace_id: UUID
    preset: str
    preset_version: str
    #: The version of the preset, and whether that was the draft.
    version: str
    is_draft: bool
    principal: str
    top_k: int
    badges: tuple[Badge, ...]
    funnel: Funnel
    hits: tuple[HitRow, ...]
    context: ContextPanel
    trace: tuple[TraceRow, ...]
    #: None if there is nothing to draw.
    contributions: Chart | None
    scores: tuple[Chart, ...]
    waterfall: Chart | None
    #: None if the search timed out before.
    answerability: AnswerabilityPanel | None
    #: Why nothing was searched; empty otherwise.
    skipped: str

    @property
    def announcement(self) -> str:
        """What a screen reader announces when the results arrive."""
        found = wording.counted(len(self.hits), "hit") if self.hits else "No results"
        return f"{found} in {self.funnel.milliseconds} milliseconds."


def result_panels(outcome: SearchOutcome, *, labels: ChunkLabels) -> ResultPanels:
    """Return the panels of a search; `labels` has the chunks that its reader may see."""
    return ResultPanels(
        trace_id=outcome.id,
        preset=outcome.preset.name,
        preset_version=outcome.preset_version,
        version=version_label(outcome.version_number),
        is_draft=outcome.configuration.is_draft,
        principal=outcome.state.scope.principal,
        top_k=outcome.state.top_k,
        badges=badges(outcome.trace),
        funnel=funnel(outcome, labels),
        hits=hit_rows(outcome),
        context=context_panel(outcome, labels),
        trace=span_rows(outcome.trace, outcome.state.scope),
        contributions=contributions(outcome),
        scores=score_charts(outcome),
        waterfall=waterfall(
            outcome.trace, deadline_ms=outcome.config.deadline_ms, soft_share=outcome.config.soft_share
        ),
        answerability=answerability_panel(outcome),
        skipped=outcome.skipped,
    )
