"""The time of a search by stage: a bar per stage from its start to its end, and the deadline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from explorer import wording
from explorer.charts.chart import Chart, bar_axis
from explorer.wording import milliseconds
from retrieval.engine.deadline import SOFT_SHARE
from retrieval.engine.state import Span

#: The deadline is drawn if the search took at least this share of it; else an arrow points to it.
_NEAR_DEADLINE: Final = 0.25
_BAR: Final = 22
_AROUND: Final = 70


@dataclass(frozen=True, slots=True)
class _TimedStage:
    stage: str
    begins: float  #: Milliseconds from the start of the search.
    takes: float
    is_degraded: bool

    @property
    def label(self) -> str:
        return wording.stage_label(self.stage)

    @property
    def ends(self) -> float:
        return self.begins + self.takes


def timed(spans: Sequence[Span]) -> Iterator[tuple[Span, float]]:
    """Yield every span with its start in seconds: stages run one after another, children start with their parent.

    A child that took longer began before its parent: its result was prefetched.
    """
    clock = 0.0
    for span in spans:
        if not span.parent:
            end = clock + span.seconds
            yield span, clock
            yield from ((it, min(clock, end - it.seconds)) for it in spans if it.parent == span.stage)
            clock = end


def timed_stages(spans: Sequence[Span]) -> tuple[_TimedStage, ...]:
    """Return the stages in order with their times; those that ran inside another replace it."""
    parents = {span.parent for span in spans}
    return tuple(
        _TimedStage(it.stage, 1000 * begins, 1000 * it.seconds, any(note.degraded for note in it.notes))
        for it, begins in timed(spans)
        if it.stage not in parents
    )


def waterfall(spans: Sequence[Span], *, deadline_ms: int | None, soft_share: float = SOFT_SHARE) -> Chart | None:
    """Return the stages as bars over time; None for a trace without spans.

    `deadline_ms` is None if it is unknown; past `soft_share` of it optional stages are skipped.
    """
    stages = timed_stages(spans)
    if not stages:
        return None
    total = 1000 * sum(span.seconds for span in spans if not span.parent)
    return Chart(
        id="waterfall",
        title="Time by stage",
        summary=_summary(stages, total, deadline_ms),
        data=[_bars(stages)],
        layout=_layout(stages, total, deadline_ms, soft_share),
        headers=("Stage", "Start, ms", "Duration, ms", "End, ms"),
        rows=tuple((it.label, f"{it.begins:.1f}", f"{it.takes:.1f}", f"{it.ends:.1f}") for it in stages),
        height=_AROUND + _BAR * len(stages),
    )


def _summary(stages: Sequence[_TimedStage], total: float, deadline_ms: int | None) -> str:
    slowest = max(stages, key=lambda it: it.takes)
    took = f"{milliseconds(total / 1000)} ms" + (f" of {deadline_ms:,} ms" if deadline_ms else "")
    return f"{took}. Slowest stage: {slowest.label}, {milliseconds(slowest.takes / 1000)} ms. Legs run in parallel."


def _bars(stages: Sequence[_TimedStage]) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "base": [round(it.begins, 3) for it in stages],
        "x": [round(it.takes, 3) for it in stages],
        "y": list(range(1, len(stages) + 1)),
        "customdata": [[it.label, wording.stage_purpose(it.stage)] for it in stages],
        "hovertemplate": "%{customdata[0]}: %{x:.1f} ms<br>%{customdata[1]}<extra></extra>",
        "text": [milliseconds(it.takes / 1000) for it in stages],
        "textposition": "outside",
        "textfont": {"size": 10, "color": "soft"},
        "cliponaxis": False,
        "marker": {"color": ["warn" if it.is_degraded else stage_colour(it.stage) for it in stages]},
    }


def stage_colour(stage: str) -> str:
    """Return the colour of a stage's group, the same in every drawing of a search."""
    known = wording.about(stage)
    return f"group-{known.group}" if known else "edge"


def _layout(stages: Sequence[_TimedStage], total: float, deadline_ms: int | None, soft_share: float) -> dict[str, Any]:
    end = max(total, *(it.ends for it in stages)) * 1.12
    is_near = deadline_ms is not None and total >= _NEAR_DEADLINE * deadline_ms
    return {
        "bargap": 0.3,
        "xaxis": {
            "range": [0, max(end, deadline_ms * 1.05) if deadline_ms is not None and is_near else end],
            "title": {"text": "milliseconds"},
            "zeroline": True,
        },
        "yaxis": bar_axis([it.label for it in stages]),
        **(_deadline(deadline_ms, round(soft_share * deadline_ms), is_near=is_near) if deadline_ms else {}),
    }


def _deadline(deadline_ms: int, soft: int, *, is_near: bool) -> dict[str, Any]:
    """Return the lines of the deadline and of the soft limit, or an arrow to the deadline."""
    if not is_near:
        text = f"deadline at {deadline_ms:,} ms →"
        return {"annotations": [_words(text, 1.0, xref="paper", xanchor="right")], "margin": {"t": 24}}
    return {
        "shapes": [_line(soft, "warn", "dot"), _line(deadline_ms, "bad", "solid")],
        "annotations": [
            _words(f"soft limit {soft:,}", soft, xref="x", xanchor="right"),
            _words(f"deadline {deadline_ms:,}", deadline_ms, xref="x", xanchor="right", shift=14),
        ],
        "margin": {"t": 36},
    }


def _line(x: float, colour: str, dash: str) -> dict[str, Any]:
    line = {"color": colour, "width": 1, "dash": dash}
    return {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def _words(text: str, x: float, *, xref: str, xanchor: str, shift: int = 0) -> dict[str, Any]:
    return {
        "text": text,
        "x": x,
        "xref": xref,
        "xanchor": xanchor,
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "yshift": shift,
        "showarrow": False,
        "font": {"size": 10, "color": "soft"},
    }
