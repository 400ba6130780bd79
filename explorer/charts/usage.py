"""Language model usage by day: costs if there are prices, else tokens."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final

from explorer.charts.chart import ABSENT, Chart
from retrieval.operations.usage import Sums

_HEIGHT: Final = 240
#: Colours by size; models beyond the last share it.
_HUES: Final = ("accent", "fulltext", "freshness", "rerank", "good", "edge")


def usage_chart(found: Mapping[tuple[date, str], Sums], *, first: date, last: date) -> Chart | None:
    """Return one bar per day, with a part per model; None without usage."""
    if not found:
        return None
    has_costs = any(sums.cost for sums in found.values())
    days = [first + timedelta(days=step) for step in range((last - first).days + 1)]
    sizes: defaultdict[str, float] = defaultdict(float)
    for (_, name), sums in found.items():
        sizes[name] += _value(sums, has_costs=has_costs)
    names = sorted(sizes, key=lambda name: (-sizes[name], name))
    hues = (*_HUES, *[_HUES[-1]] * len(names))
    total = sum(sizes.values())
    shown_total = f"{total:,.4f}" if has_costs else f"{total:,.0f} tokens"
    answers = sum(it.answers for it in found.values())
    return Chart(
        id="usage",
        title="Cost by day" if has_costs else "Tokens by day",
        summary=f"{shown_total} in total, {answers:,} answers.",
        data=[_bars(found, *it, days, has_costs=has_costs) for it in zip(names, hues, strict=False)],
        layout={
            "barmode": "stack",
            "bargap": 0.25,
            "margin": {"t": 30},
            "xaxis": {"type": "date", "showgrid": False, "nticks": 8},
            "yaxis": {
                "rangemode": "tozero",
                "nticks": 5,
                "zeroline": False,
                "fixedrange": True,
                "title": {"text": "cost" if has_costs else "tokens"},
            },
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


def _cell(sums: Sums | None, *, has_costs: bool) -> str:
    if sums is None:
        return ABSENT
    return f"{sums.cost:,.4f}" if has_costs else f"{sums.prompt_tokens + sums.completion_tokens:,}"


def _bars(
    found: Mapping[tuple[date, str], Sums], name: str, hue: str, days: list[date], *, has_costs: bool
) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": name,
        "x": [day.isoformat() for day in days],
        "y": [_value(found.get((day, name), Sums()), has_costs=has_costs) for day in days],
        "marker": {"color": hue},
        "hovertemplate": f"%{{x}}: %{{y:{',.4f' if has_costs else ',.0f'}}}<extra>%{{fullData.name}}</extra>",
    }
