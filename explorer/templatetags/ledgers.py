"""The rows of score breakdowns. A page has about a hundred, for which a template each would be slow."""

from collections.abc import Iterable
from typing import Final

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from explorer.components.ledger_rows import LedgerRow
from explorer.wording import FIELD_NAMES

register = template.Library()
_ROW: Final = """\
<div class="ledger-row"><dt class="ledger-label">{}{}</dt><dd class="ledger-value{}">{}</dd>\
<dd class="ledger-facts">{}</dd>{}{}</div>"""
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
    return swatch, row.label, good, value, " · ".join(row.facts), table, formula
