"""Template tag for charts: the figures as data."""

import json
from typing import Final

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from explorer.charts.chart import Chart

register = template.Library()

#: JSON escapes of characters that could end the element or start another.
_ESCAPES: Final = str.maketrans({"<": "\\u003C", ">": "\\u003E", "&": "\\u0026"})


@register.simple_tag
def chart_figure(chart: Chart) -> SafeString:
    """Return a chart's figure as JSON in an invisible element.

    It is a template, not a script, since scripts in swapped content are removed.
    """
    content = json.dumps(chart.figure, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)
    return format_html('<template id="{}">{}</template>', chart.data_id, mark_safe(content))  # noqa: S308 -- escaped above
