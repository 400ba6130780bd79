"""What the head of a page with charts needs."""

from django import template
from django.templatetags.static import static

from explorer import plotly

register = template.Library()


@register.simple_tag
def plotly_address() -> str:
    """Return where the browser finds plotly.js."""
    return static(plotly.NAME)
