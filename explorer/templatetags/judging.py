"""What the templates of judging need."""

from collections.abc import Mapping

from django import template

from explorer.panels.judge import JudgeStrip

register = template.Library()


@register.filter
def at_rank(strips: Mapping[int, JudgeStrip] | None, rank: int) -> JudgeStrip | None:
    """Return the grades of the hit at a place."""
    return strips.get(rank) if strips else None
