"""What language models took day by day: costs where there are prices, tokens else."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final

from explorer.charts.chart import Chart
from retrieval.operations.usage import Sums

_HEIGHT: Final = 240
#: Colours in turn; the models with the most get the first.
_HUES: Final = ("accent", "fulltext", "freshness", "rerank", "good", "edge")


def usage_chart(found: Mapping[tuple[date, str], Sums], *, first: date, last: date) -> Chart | None:
    """Return one bar a day, a part of it per model; None where nothing was used.

    Models beyond the first five share the last colour.
    """
    if not found:
        return None
    has_costs = any(sums.cost for sums in found.values())
    days = [first + timedelta(days=step) for step in range((last - first).days + 1)]
    names = _by_size(found, has_costs=has_costs)
    unit = "cost" if has_costs else "tokens"
    total = sum(_value(sums, has_costs=has_costs) for sums in found.values())
    answers = sum(it.answers for it in found.values())
    return Chart(
        id="usage",
        title="Cost by day" if has_costs else "Tokens by day",
        summary=f"{_figure(total, has_costs=has_costs)} in total, {answers:,} answers.",
        data=[_bars(found, name, days, hue, has_costs=has_costs) for name, hue in _coloured(names)],
        layout={
            "barmode": "stack",
            "bargap": 0.25,
            "margin": {"t": 30},
            "xaxis": {"type": "date", "showgrid": False, "nticks": 8},
            "yaxis": {"rangemode": "tozero", "nticks": 5, "zeroline": False, "title": {"text": unit}},
            "showlegend": True,
        },
        headers=("Day", *names),
        rows=tuple(
            (f"{day:%d %b %Y}", *(_cell(found.get((day, name)), has_costs=has_costs) for name in names)) for day in days
        ),
        height=_HEIGHT,
    )


def _value(sums: Sums, *, has_costs: bool) -> float:
    return float(sums.cost) if has_costs else float(sums.prompt_tokens + sums.completion_tokens)


def _figure(value: float, *, has_costs: bool) -> str:
    return f"{value:,.4f}" if has_costs else f"{value:,.0f} tokens"


def _cell(sums: Sums | None, *, has_costs: bool) -> str:
    if sums is None:
        return "\N{EN DASH}"
    return f"{sums.cost:,.4f}" if has_costs else f"{sums.prompt_tokens + sums.completion_tokens:,}"


def _by_size(found: Mapping[tuple[date, str], Sums], *, has_costs: bool) -> tuple[str, ...]:
    sizes: dict[str, float] = {}
    for (_, name), sums in found.items():
        sizes[name] = sizes.get(name, 0.0) + _value(sums, has_costs=has_costs)
    return tuple(sorted(sizes, key=lambda name: (-sizes[name], name)))


def _coloured(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(name, _HUES[min(place, len(_HUES) - 1)]) for place, name in enumerate(names)]


def _bars(
    found: Mapping[tuple[date, str], Sums], name: str, days: list[date], hue: str, *, has_costs: bool
) -> dict[str, Any]:
    values = [_value(found.get((day, name), Sums()), has_costs=has_costs) for day in days]
    return {
        "type": "bar",
        "name": name,
        "x": [day.isoformat() for day in days],
        "y": values,
        "marker": {"color": hue},
        "hovertemplate": f"%{{x}}: %{{y:{',.4f' if has_costs else ',.0f'}}}<extra>%{{fullData.name}}</extra>",
    }
