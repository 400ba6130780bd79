"""The mean of a measure over the runs of a schedule."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from explorer.charts.chart import Chart

_HEIGHT: Final = 220


def trend_chart(
    key: int, means: Sequence[tuple[datetime, float, str]], *, objective: str, preset: str, minimum: float | None
) -> Chart | None:
    """Return the means, the oldest first, each with its moment and why it was measured; None without any."""
    if not means:
        return None
    moments = [at.isoformat() for at, _, _ in means]
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
        title=f"{objective} of {preset}",
        summary=f"{len(means)} runs; the last one: {means[-1][1]:.3f}."
        + ("" if minimum is None else f" Minimum: {minimum:g}."),
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
            *limit,
        ],
        layout={
            "margin": {"t": 30},
            "xaxis": {"type": "date", "showgrid": False, "nticks": 8},
            "yaxis": {"title": {"text": objective}, "zeroline": False, "nticks": 5},
            "showlegend": bool(limit),
        },
        headers=("Run", objective, "Reason"),
        rows=tuple((f"{at:%d %b %Y %H:%M}", f"{mean:.4f}", reason) for at, mean, reason in means),
        height=_HEIGHT,
    )
