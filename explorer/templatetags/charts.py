"""What pages with charts need: the script's address, and the figures as data."""

import json
from typing import Final

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from explorer import plotly
from explorer.charts.chart import Chart

register = template.Library()

#: What could end the element or begin another, as JSON writes it.
_ESCAPES: Final = str.maketrans({"<": "\\u003C", ">": "\\u003E", "&": "\\u0026"})


@register.simple_tag
def plotly_address() -> str:
    """Return where the browser finds plotly.js."""
    return static(plotly.NAME)


@register.simple_tag
def chart_figure(chart: Chart) -> SafeString:
    """Return a chart's figure as JSON in an element that shows nothing.

    A template and not a script: of what is swapped into a page, scripts of any kind are thrown away.
    """
    content = json.dumps(chart.figure, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)
    return format_html('<template id="{}">{}</template>', chart.data_id, mark_safe(content))  # noqa: S308 -- escaped above
