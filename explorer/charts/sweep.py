"""What a sweep measured: two settings against the objective, and the objective against the time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from explorer.charts.chart import ABSENT, Chart
from retrieval.ranking.tuning import Measured, pareto

_HEIGHT: Final = 320
_CELL: Final = 46  #: Pixels of a square of the heat map, and around all of them.
_AROUND: Final = 110
_SQUARE: Final = 38


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """A configuration of a sweep."""

    number: int
    values: Mapping[str, float]
    mean: float | None
    p95_ms: float | None
    is_best: bool = False

    @property
    def label(self) -> str:
        """Its settings, in a line."""
        return ", ".join(f"{name} {value:g}" for name, value in self.values.items()) or "start"


def heat_map(points: Sequence[SweepPoint], *, objective: str) -> Chart | None:
    """Return the objective at each pair of values; None unless two settings were tried."""
    found = [it for it in points if it.values and it.mean is not None]
    names = list(found[0].values) if found else []
    if len(names) != 2:  # noqa: PLR2004 -- a plane has two axes
        return None
    across, up = names
    columns, lines = (sorted({it.values[name] for it in found}) for name in names)
    best = max(found, key=lambda it: (it.mean or 0.0, -it.number))
    return Chart(
        id="sweep-map",
        title=f"{objective} by {across} and {up}",
        summary=f"On the tuning half; best: {best.label}, {best.mean:.3f}.",
        data=[
            {
                "type": "scatter",
                "mode": "markers+text",
                "x": [f"{it.values[across]:g}" for it in found],
                "y": [f"{it.values[up]:g}" for it in found],
                "text": [f"{it.mean:.3f}" for it in found],
                "textfont": {"size": 10, "color": "ink"},
                "hovertemplate": f"{across} %{{x}}, {up} %{{y}}: %{{text}}<extra></extra>",
                "marker": {
                    "symbol": "square",
                    "size": _SQUARE,
                    "color": [it.mean for it in found],
                    "colorscale": [[0, "line"], [1, "dense"]],
                    "line": {"width": [3 if it.is_best else 0 for it in found], "color": "ink"},
                },
                "showlegend": False,
            }
        ],
        layout={"xaxis": _category(across, columns), "yaxis": _category(up, lines)},
        headers=(across, up, objective),
        rows=tuple((f"{it.values[across]:g}", f"{it.values[up]:g}", f"{it.mean:.4f}") for it in found),
        height=_AROUND + _CELL * max(len(lines), 3),
    )


def _category(name: str, values: Sequence[float]) -> dict[str, Any]:
    labels = [f"{value:g}" for value in values]
    return {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": labels,
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "title": {"text": name},
    }


def pareto_plot(points: Sequence[SweepPoint], *, objective: str, max_p95_ms: float | None) -> Chart | None:
    """Return the objective against the p95, and which configurations no other one beats in both; None without two."""
    known = [it for it in points if it.mean is not None and it.p95_ms is not None]
    if len(known) < 2:  # noqa: PLR2004 -- one point is no plot
        return None
    front = {it.number for it in pareto(Measured(it.number, it.mean, it.p95_ms) for it in known)}
    on_front = sorted((it for it in known if it.number in front), key=lambda it: it.p95_ms or 0.0)
    limit = "" if max_p95_ms is None else f" At most {max_p95_ms:g} ms are allowed."
    return Chart(
        id="sweep-pareto",
        title=f"{objective} against p95",
        summary=f"{len(front)} of {len(known)} on the front: no other configuration beats them in both.{limit}",
        data=[
            _dots("Configurations", [it for it in known if it.number not in front], "markers", "edge"),
            _dots("Pareto front", on_front, "lines+markers", "dense"),
            _dots("Start", [it for it in known if it.number == 0], "markers", "warn", symbol="diamond"),
            _dots("Best", [it for it in known if it.is_best], "markers", "good", symbol="star"),
        ],
        layout={
            "margin": {"t": 34},
            "xaxis": {"title": {"text": "p95, ms"}, "zeroline": False},
            "yaxis": {"title": {"text": objective}, "zeroline": False},
            "showlegend": True,
        },
        headers=("Configuration", objective, "p95", "Pareto front"),
        rows=tuple(
            (it.label, f"{it.mean:.4f}", f"{it.p95_ms:.0f} ms", "yes" if it.number in front else ABSENT) for it in known
        ),
        height=_HEIGHT,
    )


def _dots(name: str, points: Sequence[SweepPoint], mode: str, hue: str, *, symbol: str = "circle") -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": mode,
        "name": name,
        "x": [it.p95_ms for it in points],
        "y": [it.mean for it in points],
        "customdata": [it.label for it in points],
        "hovertemplate": "%{customdata}<br>%{y:.3f}, %{x:.0f} ms<extra>%{fullData.name}</extra>",
        "marker": {"color": hue, "symbol": symbol, "size": 9 if symbol == "circle" else 13},
        "line": {"color": hue, "width": 1},
    }
