"""Two runs query by query: a dot for each, above the diagonal where the second run is better."""

from collections.abc import Sequence
from typing import Final

from explorer.charts.chart import Chart

_HEIGHT: Final = 340


def scatter_chart(values: Sequence[tuple[str, float, float]], *, names: tuple[str, str]) -> Chart | None:
    """Return the nDCG of both runs for each query; None without queries."""
    if not values:
        return None
    above = sum(second > first for _, first, second in values)
    below = sum(second < first for _, first, second in values)
    first, second = names
    return Chart(
        id="runs-scatter",
        title=f"nDCG of {first} and {second}, by query",
        summary=f"{above} of {len(values)} queries above the diagonal, where {second} is better; {below} below it.",
        data=[
            {
                "type": "scatter",
                "mode": "lines",
                "x": [0, 1],
                "y": [0, 1],
                "hoverinfo": "skip",
                "line": {"color": "edge", "width": 1},
            },
            {
                "type": "scatter",
                "mode": "markers",
                "x": [it[1] for it in values],
                "y": [it[2] for it in values],
                "customdata": [it[0] for it in values],
                "hovertemplate": f"%{{customdata}}<br>{first} %{{x:.3f}}, {second} %{{y:.3f}}<extra></extra>",
                "marker": {"color": "dense", "size": 8, "opacity": 0.6},
            },
        ],
        layout={
            "xaxis": {"title": {"text": f"nDCG of {first}"}, "range": [-0.03, 1.03], "zeroline": False},
            "yaxis": {"title": {"text": f"nDCG of {second}"}, "range": [-0.03, 1.03], "zeroline": False},
            "showlegend": False,
        },
        headers=("Question", first, second),
        rows=tuple((query, f"{before:.3f}", f"{after:.3f}") for query, before, after in values),
        height=_HEIGHT,
    )
