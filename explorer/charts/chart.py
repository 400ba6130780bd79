"""What a page needs to draw a chart, and to say the same without drawing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A Plotly figure and its table.

    Colours in the figure are names of the design's tokens ("dense", "soft", "line"); `static/js/charts.js` puts the
    theme's own colours in their places, so that a chart follows light and dark.
    """

    #: Unique on its page; names the element.
    id: str
    title: str
    #: One sentence that says what the chart shows, for those who do not see it.
    summary: str
    #: Plotly's traces and layout, as JSON would have them.
    data: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    #: The same numbers, as text.
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    #: Pixels.
    height: int = 260

    @property
    def data_id(self) -> str:
        """The id of the element that holds the figure as JSON."""
        return f"chart-data-{self.id}"

    @property
    def figure(self) -> dict[str, Any]:
        """What the page hands to the script, as JSON."""
        return {"data": list(self.data), "layout": dict(self.layout), "height": self.height}


def plain(text: str) -> str:
    """Return a text that a figure shows letter by letter; Plotly reads tags, links and styles in what it is given."""
    return text.replace("&", "&amp;").replace("<", "&lt;")
