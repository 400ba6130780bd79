"""Searches over time: latency and volume."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from explorer.charts.chart import ABSENT, Chart
from retrieval.records.traffic import Bin, Traffic

_HEIGHT: Final = 230
_DAY: Final = timedelta(days=1)


def traffic_charts(found: Traffic) -> tuple[Chart, Chart] | None:
    """Return latency and volume; None without searches."""
    return (_latency_chart(found), _volume_chart(found)) if found.total.searches else None


def _latency_chart(found: Traffic) -> Chart:
    """Return the median and p95 latency in milliseconds; bins without searches are gaps."""
    p50, p95 = milliseconds(found.total.p50), milliseconds(found.total.p95)
    return Chart(
        id="latency",
        title="Latency",
        summary=f"Median {p50} ms, p95 {p95} ms.",
        data=[_line(found.bins, "p95", "p95", "freshness"), _line(found.bins, "median", "p50", "accent")],
        layout=_layout("ms"),
        headers=("From", "Searches", "Median, ms", "p95, ms"),
        rows=tuple(
            (moment(it.begins, found), f"{it.figures.searches:,}", *map(milliseconds, (it.figures.p50, it.figures.p95)))
            for it in found.bins
        ),
        height=_HEIGHT,
    )


def _volume_chart(found: Traffic) -> Chart:
    """Return the searches of each bin: those with hits below those without."""
    total = found.total
    return Chart(
        id="volume",
        title="Searches",
        summary=f"{total.searches:,} in total; {total.empty:,} without hits, {total.degraded:,} degraded.",
        data=[
            _bars(found, "with hits", [it.figures.searches - it.figures.empty for it in found.bins], "accent"),
            _bars(found, "no hits", [it.figures.empty for it in found.bins], "bad"),
        ],
        layout=_layout("") | {"legend": {"traceorder": "normal"}, "barmode": "stack", "bargap": 0.25},
        headers=("From", "With hits", "No hits", "Refused", "Degraded"),
        rows=tuple(
            (
                moment(it.begins, found),
                *map(str, (it.figures.searches - it.figures.empty, it.figures.empty)),
                *map(str, (it.figures.refused, it.figures.degraded)),
            )
            for it in found.bins
        ),
        height=_HEIGHT,
    )


def milliseconds(value: float | None) -> str:
    """Return a latency, or a dash for none."""
    return ABSENT if value is None else f"{value:,.0f}"


def moment(begins: datetime, found: Traffic) -> str:
    """Return the start of a bin, with the hour if bins are shorter than a day."""
    return f"{begins:%d %b}" if found.width >= _DAY else f"{begins:%d %b %H:%M}"


def _times(bins: Sequence[Bin]) -> list[str]:
    return [it.begins.strftime("%Y-%m-%d %H:%M") for it in bins]


def _line(bins: Sequence[Bin], name: str, field: str, colour: str) -> dict[str, Any]:
    values = [getattr(it.figures, field) for it in bins]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": _times(bins),
        "y": [None if value is None else round(value, 1) for value in values],
        "line": {"color": colour, "width": 1.5},
        "marker": {"color": colour, "size": 4},
        "connectgaps": False,
        "hovertemplate": f"%{{x}}: {name} %{{y:.0f}} ms<extra></extra>",
    }


def _bars(found: Traffic, name: str, values: list[int], colour: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": name,
        "x": _times(found.bins),
        "y": values,
        "offset": 0,
        "width": found.width / timedelta(milliseconds=1) * 0.8,
        "marker": {"color": colour},
        "hovertemplate": f"%{{x}}: %{{y}} {name}<extra></extra>",
    }


def _layout(unit: str) -> dict[str, Any]:
    """Return a layout over time; only values with a unit are zoomed, since the bars of counts start at zero."""
    return {
        "margin": {"t": 30},
        "xaxis": {"type": "date", "showgrid": False, "nticks": 6},
        "yaxis": {
            "rangemode": "tozero",
            "nticks": 5,
            "ticksuffix": f" {unit}" if unit else "",
            "zeroline": False,
            "fixedrange": not unit,
        },
    }
