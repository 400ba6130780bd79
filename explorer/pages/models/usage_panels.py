"""Usage of language models in figures and tables."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from explorer.pages.models.language_model_panels import money
from retrieval.operations.usage import Line, Sums

_HEADINGS: Final = {"model": "By model", "user": "By user", "key": "By API key", "month": "By month"}
_NAMES: Final = {"model": "Model", "user": "User", "key": "API key", "month": "Month"}
_MAX_ROWS: Final = 50


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its name."""

    label: str
    value: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """What one user, key, model or month used."""

    name: str
    answers: int
    read: int
    written: int
    cost: str
    #: How many of the answers were counted here.
    estimated: int


@dataclass(frozen=True, slots=True)
class Table:
    """Usage summed by one thing."""

    id: str
    heading: str
    name: str
    rows: tuple[Row, ...]
    #: Rows that are left out.
    more: int


def usage_figures(sums: Sums) -> list[Figure]:
    """Return the figures of the whole."""
    return [
        Figure("Answers", f"{sums.answers:,}"),
        Figure("Tokens read", f"{sums.prompt_tokens:,}"),
        Figure("Tokens written", f"{sums.completion_tokens:,}"),
        Figure("Cost", money(sums.cost)),
    ]


def usage_table(group: str, lines: Iterable[Line]) -> Table:
    """Return the table of one group."""
    rows = [_row(group, line) for line in lines]
    return Table(group, _HEADINGS[group], _NAMES[group], tuple(rows[:_MAX_ROWS]), max(0, len(rows) - _MAX_ROWS))


def _row(group: str, line: Line) -> Row:
    sums = line.sums
    return Row(
        _name(group, line), sums.answers, sums.prompt_tokens, sums.completion_tokens, money(sums.cost), sums.estimated
    )


def _name(group: str, line: Line) -> str:
    """Return what a line is called; who is gone is said to be."""
    names = line.names
    if group == "month":
        return f"{names['month']:%B %Y}"
    if group == "model":
        return f"{names['model_name']}{'' if names['language_model_id'] else ' (deleted)'}"
    if group == "key" and names["key_id"]:
        return f"{names['key__name']} ({names['key__prefix']}…), {names['user__username'] or 'a deleted user'}"
    if group == "key":
        return f"without a key, {names['user__username'] or 'a deleted user'}"
    return str(names["user__username"] or "a deleted user")
