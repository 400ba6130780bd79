"""How often questions are answerable that get a confidence."""

from collections.abc import Sequence
from typing import Final

from explorer import wording
from explorer.charts.chart import Chart
from retrieval.evaluation.calibration import Bin

_HEIGHT: Final = 280


def reliability_chart(bins: Sequence[Bin]) -> Chart:
    """Return the share of answerable questions by confidence; for exact confidences it lies on the diagonal."""
    return Chart(
        id="reliability",
        title="Confidence and answerable questions",
        summary=f"{wording.counted(sum(it.count for it in bins), 'question')} in groups of similar confidence, with "
        "the size of each. Below the dashed line the confidence is too high, above it too low.",
        data=[
            {
                "type": "scatter",
                "mode": "lines",
                "name": "Exact confidence",
                "x": [0, 1],
                "y": [0, 1],
                "line": {"color": "faint", "width": 1, "dash": "dash"},
                "hoverinfo": "skip",
            },
            {
                "type": "scatter",
                "mode": "lines+markers+text",
                "name": "This run",
                "x": [it.confidence for it in bins],
                "y": [it.answerable for it in bins],
                "text": [str(it.count) for it in bins],
                "textposition": "top center",
                "textfont": {"size": 10, "color": "soft"},
                "line": {"color": "dense", "width": 2},
                "hovertemplate": "confidence %{x:.2f}: %{y:.0%} of %{text} answerable<extra></extra>",
            },
        ],
        layout={
            "margin": {"t": 30},
            "xaxis": {"title": {"text": "Mean confidence"}, "range": [0, 1], "nticks": 6},
            "yaxis": {"title": {"text": "Answerable"}, "range": [0, 1.12], "tickformat": ".0%", "nticks": 6},
            "showlegend": True,
        },
        headers=("Confidence", "Questions", "Mean confidence", "Answerable"),
        rows=tuple(
            (f"{it.low:.1f} to {it.high:.1f}", str(it.count), f"{it.confidence:.2f}", f"{it.answerable:.0%}")
            for it in bins
        ),
        height=_HEIGHT,
    )
