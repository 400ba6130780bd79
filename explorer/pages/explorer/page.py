"""Everything that the results of one search show, computed together from its outcome."""

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
from explorer.components.snippets import StemIn
from explorer.components.timeline import TraceRow, trace_rows
from explorer.pages.explorer.hits import HitRow, hit_rows
from retrieval.search.outcome import SearchOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPanels:
    """The panels of one search."""

    trace_id: UUID
    preset: str
    preset_version: str
    #: The preset's version that it ran with, and whether that was the draft.
    version: str
    is_draft: bool
    principal: str
    top_k: int
    badges: tuple[Badge, ...]
    funnel: Funnel
    hits: tuple[HitRow, ...]
    context: ContextPanel
    trace: tuple[TraceRow, ...]
    #: None where there is nothing to draw.
    contributions: Chart | None
    scores: tuple[Chart, ...]
    waterfall: Chart | None
    #: None when the time was up before it was judged.
    answerability: AnswerabilityPanel | None
    #: Why nothing was searched; empty where something was.
    skipped: str

    @property
    def announcement(self) -> str:
        """What a screen reader is told when the results arrive."""
        found = wording.counted(len(self.hits), "hit") if self.hits else "No results"
        return f"{found} in {self.funnel.milliseconds} milliseconds."


def result_panels(outcome: SearchOutcome, *, labels: ChunkLabels, stem_in: StemIn) -> ResultPanels:
    """Return the panels of a search.

    `labels` names the chunks that its reader may see, `stem_in` gives the stemmer of a connection's language.
    """
    return ResultPanels(
        trace_id=outcome.id,
        preset=outcome.preset.name,
        preset_version=outcome.preset_version,
        version=version_label(outcome.version_number),
        is_draft=outcome.configuration.is_draft,
        principal=outcome.state.scope.principal,
        top_k=outcome.state.top_k,
        badges=badges(outcome),
        funnel=funnel(outcome, labels),
        hits=hit_rows(outcome, stem_in=stem_in),
        context=context_panel(outcome, labels),
        trace=trace_rows(outcome),
        contributions=contributions(outcome),
        scores=score_charts(outcome),
        waterfall=waterfall(
            outcome.trace, deadline_ms=outcome.config.deadline_ms, soft_share=outcome.config.soft_share
        ),
        answerability=answerability_panel(outcome),
        skipped=outcome.skipped,
    )
