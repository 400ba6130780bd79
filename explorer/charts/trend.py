"""The mean of a measure over the runs of a schedule."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from explorer.charts.chart import ABSENT, Chart
from explorer.wording import preset_title

_HEIGHT: Final = 220


def trend_chart(
    key: int,
    means: Sequence[tuple[datetime, float, str]],
    *,
    objective: str,
    preset: str,
    minimum: float | None,
    right: Sequence[tuple[datetime, float]] = (),
) -> Chart | None:
    """Return the means, the oldest first, each with its moment and why it was measured; None without any.

    `right` has the moments and the shares of right answers.
    """
    if not means:
        return None
    moments, shares = [at.isoformat() for at, _, _ in means], dict(right)
    answers = (
        [
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": "Right answers",
                "x": [at.isoformat() for at in shares],
                "y": list(shares.values()),
                "line": {"color": "good", "width": 2},
                "hovertemplate": "%{x}: %{y:.3f} right<extra></extra>",
            }
        ]
        if shares
        else []
    )
    limit = (
        []
        if minimum is None
        else [
            {
                "type": "scatter",
                "mode": "lines",
                "name": "Minimum",
                "x": [moments[0], moments[-1]],
                "y": [minimum, minimum],
                "line": {"color": "bad", "width": 1, "dash": "dash"},
                "hovertemplate": "minimum %{y:.3f}<extra></extra>",
            }
        ]
    )
    return Chart(
        id=f"trend-{key}",
        title=f"{objective} of {preset_title(preset)}",
        summary=f"{len(means)} runs; the last one: {means[-1][1]:.3f}."
        + ("" if minimum is None else f" Minimum: {minimum:g}.")
        + (f" Right answers: {right[-1][1]:.3f}." if right else ""),
        data=[
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": objective,
                "x": moments,
                "y": [mean for _, mean, _ in means],
                "customdata": [reason for _, _, reason in means],
                "line": {"color": "dense", "width": 2},
                "hovertemplate": "%{x}: %{y:.3f}, %{customdata}<extra></extra>",
            },
            *answers,
            *limit,
        ],
        layout={
            "margin": {"t": 30},
            "xaxis": {"type": "date", "showgrid": False, "nticks": 8},
            "yaxis": {"title": {"text": objective}, "zeroline": False, "nticks": 5},
            "showlegend": bool(limit or answers),
        },
        headers=("Run", objective, *(("Right answers",) if shares else ()), "Reason"),
        rows=tuple((f"{at:%d %b %Y %H:%M}", f"{mean:.4f}", *_right(at, shares), reason) for at, mean, reason in means),
        height=_HEIGHT,
    )


def _right(at: datetime, shares: Mapping[datetime, float]) -> tuple[str, ...]:
    if not shares:
        return ()
    return (f"{shares[at]:.4f}" if at in shares else ABSENT,)
