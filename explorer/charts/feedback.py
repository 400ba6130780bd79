"""Thumbs for answers by week."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final

from explorer.charts.chart import ABSENT, Chart
from retrieval.operations.feedback import Thumbs

_HEIGHT: Final = 220
_WEEK: Final = timedelta(days=7)


def feedback_chart(found: Mapping[date, Thumbs], *, first: date, last: date) -> Chart | None:
    """Return one bar per week, thumbs up above zero and thumbs down below; None without ratings."""
    if not found:
        return None
    monday = first - timedelta(days=first.weekday())
    weeks = [monday + step * _WEEK for step in range((last - monday) // _WEEK + 1)]
    thumbs = [found.get(week, Thumbs()) for week in weeks]
    up, down = sum(it.up for it in thumbs), sum(it.down for it in thumbs)
    return Chart(
        id="feedback",
        title="Ratings by week",
        summary=f"{up:,} up, {down:,} down.",
        data=[
            _bars("Thumbs up", "good", weeks, [it.up for it in thumbs]),
            _bars("Thumbs down", "bad", weeks, [-it.down for it in thumbs]),
        ],
        layout={
            "barmode": "relative",
            "bargap": 0.35,
            "margin": {"t": 30},
            "xaxis": {"type": "date", "showgrid": False, "nticks": 8},
            "yaxis": {"nticks": 5, "tickformat": ",d", "fixedrange": True, "title": {"text": "ratings"}},
            "showlegend": True,
        },
        headers=("Week of", "Thumbs up", "Thumbs down", "Share of thumbs up"),
        rows=tuple(
            (f"{week:%d %b %Y}", str(it.up), str(it.down), ABSENT if it.share is None else f"{it.share:.0%}")
            for week, it in zip(weeks, thumbs, strict=True)
        ),
        height=_HEIGHT,
    )


def _bars(name: str, hue: str, weeks: list[date], values: list[int]) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": name,
        "x": [week.isoformat() for week in weeks],
        "y": values,
        "marker": {"color": hue},
        "customdata": [abs(value) for value in values],
        "hovertemplate": "Week of %{x}: %{customdata}<extra>%{fullData.name}</extra>",
    }
