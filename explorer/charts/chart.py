"""What a page needs to draw a chart, and to show the same data as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

ABSENT: Final = "\N{EN DASH}"  #: What a table shows for a missing value.


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A Plotly figure and its table.

    Colours in the figure are names of design tokens ("dense", "soft", "line"); `static/js/charts.js` replaces them with
    the colours of the current theme.
    """

    id: str
    title: str
    summary: str  #: One sentence that describes the chart, for those who do not see it.
    data: Sequence[Mapping[str, Any]]  #: Plotly's traces and layout, ready for JSON.
    layout: Mapping[str, Any]
    headers: tuple[str, ...]  #: The same data, as text.
    rows: tuple[tuple[str, ...], ...]
    height: int = 260  #: Pixels.

    @property
    def data_id(self) -> str:
        """The id of the element that holds the figure as JSON."""
        return f"chart-data-{self.id}"

    @property
    def figure(self) -> dict[str, Any]:
        """The figure that the page passes to the script, ready for JSON."""
        return {"data": list(self.data), "layout": dict(self.layout), "height": self.height}


def bar_axis(labels: Sequence[str]) -> dict[str, Any]:
    """Return the axis of horizontal bars at 1, 2, ... from the top, with their labels."""
    return {
        "autorange": "reversed",
        "tickvals": list(range(1, len(labels) + 1)),
        "ticktext": list(labels),
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }


def plain(text: str) -> str:
    """Return a text that Plotly shows unchanged; Plotly would interpret tags, links and styles."""
    return text.replace("&", "&amp;").replace("<", "&lt;")
