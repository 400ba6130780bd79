"""Template tags for judging hits."""

from collections.abc import Mapping
from typing import Final

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from explorer.pages.evaluation.judge import JudgeStrip
from retrieval.records.judgments import GRADES

register = template.Library()
_CLEAR: Final = """\
<button class="judge-grade judge-clear" type="submit" form="judge" name="grade" value="{passage}=" \
id="judge-{rank}-x" data-grade="x" title="Clear grade" aria-label="Clear grade" \
hx-post="{address}"{state}>&times;</button>"""
_BUTTON: Final = """\
<button class="judge-grade" type="submit" form="judge" name="grade" value="{passage}={grade}" \
id="judge-{rank}-{grade}" data-grade="{grade}" title="{grade}: {meaning}" aria-label="{grade}, {meaning}" \
aria-pressed="{pressed}" hx-post="{address}">{grade}</button>"""


@register.filter
def at_rank(strips: Mapping[int, JudgeStrip] | None, rank: int) -> JudgeStrip | None:
    """Return the grades of the hit at a rank."""
    return strips.get(rank) if strips else None


@register.filter
def grade_buttons(strip: JudgeStrip) -> SafeString:
    """Return the button that clears a hit's grade, and one for each grade."""
    address = reverse("explorer:judge")
    clear = format_html(
        _CLEAR, rank=strip.rank, passage=strip.passage, address=address, state=" disabled" if strip.own is None else ""
    )
    buttons = (
        {
            "rank": strip.rank,
            "passage": strip.passage,
            "grade": grade,
            "meaning": meaning,
            "pressed": "true" if grade == strip.own else "false",
            "address": address,
        }
        for grade, meaning in GRADES.items()
    )
    return clear + format_html_join("", _BUTTON, buttons)
