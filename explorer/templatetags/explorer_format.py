"""Template tags for the pages: formatted numbers, addresses of passages, charts, repeated fragments of HTML."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from explorer import wording
from explorer.charts.chart import Chart
from explorer.charts.waterfall import stage_colour
from explorer.components.bars import BarPart
from explorer.components.chunk_tables import text_and_tables
from explorer.components.drops import DropRow
from explorer.components.lanes import Card, Place
from explorer.components.links import document_url
from explorer.components.preset_numbers import figure, version_label
from explorer.components.scope import sources_label
from explorer.components.snippets import Segment
from explorer.navigation import place_of
from explorer.pages.evaluation.judge import JudgeStrip
from explorer.pages.explorer.ledger_rows import LedgerRow
from explorer.pages.side_by_side.panels import cost_words, model_words
from explorer.wording import FIELD_NAMES
from retrieval.evaluation.case_answers import expected_text
from retrieval.ingest import problems
from retrieval.records.judgments import GRADES

register = template.Library()
register.simple_tag(document_url)
register.simple_tag(place_of)
register.filter(sources_label)
register.filter(wording.level)
register.filter(wording.formula)
register.filter(problems.advice)
register.filter(model_words)
register.filter(cost_words)
register.filter(expected_text)
#: JSON escapes of characters that could end an element or start another.
_ESCAPES: Final = str.maketrans({"<": "\\u003C", ">": "\\u003E", "&": "\\u0026"})
_BAR: Final = """\
<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" focusable="false">\
<rect class="fill-track" width="100" height="6"/>{}</svg>"""
_LANE_SOURCE: Final = '<span class="lane-source"><span class="hue" aria-hidden="true"></span>{}</span>'
_LANE_CARD: Final = """\
<article class="lane-card{alone}{hue}">
  <span class="lane-rank"><span class="visually-hidden">Rank </span>{rank}</span>
  <p class="lane-name{faint}">{name}</p>
  <p class="lane-snippet{faint}">{snippet}</p>
  <p class="lane-meta">{source} <span class="lane-score">{score}</span> <span class="lane-places">{places}</span></p>
</article>"""
_DROP: Final = """\
<li class="drop"><a href="{}">{}</a><span class="drop-reason">{}</span><span class="faint">{}</span>{}</li>"""
_DROP_WHERE: Final = """\
<a class="drop-where" href="{}" hx-get="{}" hx-target="#results" hx-push-url="true" hx-indicator="#ask">\
Trace document<span class="visually-hidden"> {}</span></a>"""


@register.filter
def ago(then: datetime) -> str:
    """Return how long ago a time was: "3 days ago"."""
    return wording.ago(then, timezone.now())


@register.filter
def kind_icons(kind: str) -> tuple[str, str]:
    """Return the templates of the icon of a kind of connection, the general one last."""
    return f"icons/kind-{kind}.svg", "icons/connections.svg"


@register.filter
def at_key(words: Mapping[str, str], key: str) -> str:
    """Return the word for a key; the key itself without one."""
    return words.get(key, key)


@register.filter
def thousands(number: float) -> str:
    """Return a number, rounded to a whole one, with separators: 1,204."""
    return f"{number:,.0f}"


@register.filter
def signed(value: float) -> str:
    """Return a difference with its sign: "+0.042"."""
    return f"{value:+.3f}"


@register.filter
def role_label(role: str) -> str:
    """Return why a passage was packed; empty if all passages are hits."""
    return wording.ROLE_LABELS.get(role, role)


@register.filter
def may_pass(reason: str) -> bool:
    """Return whether trying such an item again can help."""
    return reason not in problems.PERMANENT


@register.filter
def score_bar(parts: Iterable[BarPart]) -> SafeString:
    """Return a bar of parts as SVG."""
    pieces = ((part.signal, " is-absent" if part.absent else "", part.x, part.width) for part in parts)
    drawn = format_html_join("", '<rect class="fill-stage fill-{}{}" x="{}" width="{}" height="6"/>', pieces)
    return format_html(_BAR, drawn)


@register.filter
def marked(segments: Iterable[Segment]) -> SafeString:
    """Return text with the query matches marked."""
    pieces = (format_html("<mark>{}</mark>", it.text) if it.matched else it.text for it in segments)
    return format_html_join("", "{}", ((piece,) for piece in pieces))


register.filter("text_and_tables", text_and_tables)
register.filter("preset_title", wording.preset_title)
register.filter("stage_fill", stage_colour)
register.filter("version_label", version_label)
register.filter("figure", figure)


@register.filter
def trail(headings: Iterable[str]) -> SafeString:
    """Return the headings of a passage, to follow the title of its document."""
    return format_html_join("", '<span class="hit-trail"> &rsaquo; {}</span>', ((heading,) for heading in headings))


@register.simple_tag
def chart_figure(chart: Chart) -> SafeString:
    """Return a chart's figure as JSON in an invisible element.

    It is a template, not a script, since scripts in swapped content are removed.
    """
    content = json.dumps(chart.figure, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)
    return format_html('<template id="{}">{}</template>', chart.data_id, mark_safe(content))  # noqa: S308 -- escaped above


@register.simple_tag
def lane_card(card: Card, run_as: str) -> SafeString:
    """Return a chunk in a lane; only the rank if the reader may not see it."""
    name, snippet = "Deleted or not visible to you", "Only its rank is shown."
    if card.chunk_id:
        address, title = document_url(card.chunk_id, run_as), marked(card.title)
        name = format_html('<a class="lane-link" href="{}">{}{}</a>', address, title, trail(card.trail))
        snippet = marked(card.snippet)
    source = format_html(_LANE_SOURCE, card.source) if card.source else ""
    return format_html(
        _LANE_CARD,
        alone=" is-alone" if card.is_alone else "",
        hue=f" is-hue-{card.hue}" if card.hue else "",
        rank=card.rank,
        faint="" if card.chunk_id else " faint",
        name=name,
        snippet=snippet,
        source=source,
        score=card.score,
        places=format_html_join("", '<span class="lane-place{}">{}{} {}{}</span>', map(_place_parts, card.places)),
    )


def _place_parts(place: Place) -> tuple[str, SafeString, str, str, SafeString | str]:
    spoken = format_html('<span class="visually-hidden">{}, </span>', place.direction or "not returned")
    arrow = format_html(' <span aria-hidden="true">{}</span>', place.arrow) if place.arrow else ""
    return (f" is-{place.direction}" if place.direction else "", spoken, place.lane, place.text, arrow)


@register.simple_tag
def drop_rows(drops: Iterable[DropRow], run_as: str, where_to: str = "") -> SafeString:
    """Return dropped hits as items; with `where_to`, a query string, each links to its document trace."""
    return format_html_join("", _DROP, (_drop_parts(drop, run_as, where_to) for drop in drops))


def _drop_parts(drop: DropRow, run_as: str, where_to: str) -> tuple[str, ...]:
    pin = f"{where_to}&pin={drop.chunk_id.document_id}"
    where = format_html(_DROP_WHERE, pin, pin, drop.label) if where_to else ""
    return document_url(drop.chunk_id, run_as), drop.label, drop.reason, drop.detail, where


@register.filter
def table_rows(rows: Iterable[Sequence[str]]) -> SafeString:
    """Return the rows of a table body; the first cell of each is its header."""
    head = '<tr><th scope="row">{}</th>'
    return format_html_join(
        "", "{}", ((format_html(f"{head}{'<td>{}</td>' * (len(row) - 1)}</tr>", *row),) for row in rows)
    )


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


_ROW: Final = """\
<div class="ledger-row"><dt class="ledger-label">{}{}</dt><dd class="ledger-value{}">{}</dd>\
<dd class="ledger-facts">{}</dd>{}{}</div>"""
_LABEL: Final = '<span class="term" tabindex="0" title="{}">{}</span>'
_SWATCH: Final = '<span class="swatch is-{}{}" aria-hidden="true"></span>'
_AMOUNT: Final = '<data value="{}">{}</data>'
_FORMULA: Final = '<dd class="ledger-formula">{}{}</dd>'
_KEY: Final = '<span class="ledger-key">{}</span>'
_TERMS: Final = """\
<dd class="ledger-terms"><table class="terms"><thead class="visually-hidden">\
<tr><th>Lexeme</th><th>Field</th><th>idf</th><th>Share</th></tr></thead><tbody>{}</tbody></table></dd>"""
_TERM: Final = """\
<tr><th scope="row"><mark>{}</mark></th><td>{}</td><td class="number">idf {}</td><td class="number">{}</td></tr>"""


@register.filter
def part_rows(rows: Iterable[LedgerRow]) -> SafeString:
    """Return the parts of a score as entries of a description list, each with its colour in the bar."""
    return format_html_join(
        "", _ROW, (_parts(row, format_html(_SWATCH, row.signal, " is-absent" if row.absent else "")) for row in rows)
    )


@register.filter
def decision_rows(rows: Iterable[LedgerRow]) -> SafeString:
    """Return what else decided a rank as entries of a description list."""
    return format_html_join("", _ROW, (_parts(row, "") for row in rows))


def _parts(row: LedgerRow, swatch: str) -> tuple[str, ...]:
    good = " is-good" if row.signal == "access" else ""
    value = row.value if row.amount is None else format_html(_AMOUNT, repr(row.amount), row.value)
    key = format_html(_KEY, row.config_key) if row.config_key else ""
    formula = format_html(_FORMULA, row.formula, key) if row.formula or key else ""
    terms = [(it.lexeme, FIELD_NAMES[it.weight], f"{it.idf:.2f}", f"{it.share:.3f}") for it in row.terms]
    table = format_html(_TERMS, format_html_join("", _TERM, terms)) if terms else ""
    words = wording.formula(row.signal)
    label = format_html(_LABEL, words, row.label) if words else row.label
    return swatch, label, good, value, " · ".join(row.facts), table, formula
