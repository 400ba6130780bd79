"""Format the selected units as Markdown quotes, with their context and adjacent units joined. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from retrieval.answers.selection import Candidate
from retrieval.llm.citations import escape_markers
from retrieval.text.units import Unit, UnitKind

_ITEMS: Final = frozenset({UnitKind.STEP, UnitKind.BULLET})
#: A longer list is not quoted completely.
_MAX_ITEMS: Final = 8
_MAX_LIST_CHARACTERS: Final = 900
_BACKTICKS: Final = re.compile("`+")
_MIN_FENCE: Final = 3


@dataclass(frozen=True, slots=True)
class Quote:
    """Consecutive units of one passage, and the passages that contain the same text."""

    units: tuple[Unit, ...]
    numbers: tuple[int, ...]


def quotes_of(chosen: Sequence[Candidate], found: Sequence[Candidate]) -> tuple[Quote, ...]:
    """Return the quotes of the selected units: passages by their best unit, in reading order inside each."""
    passages = dict.fromkeys(candidate.passage.number for candidate in chosen)
    return tuple(
        Quote(units, (number, *_repeated_in(units, found, besides=number)))
        for number in passages
        for units in _runs([candidate for candidate in chosen if candidate.passage.number == number])
    )


def _runs(chosen: Sequence[Candidate]) -> Iterator[tuple[Unit, ...]]:
    """Yield the units to quote of one passage; adjacent units of one block are one quote."""
    units = chosen[0].units
    wanted = sorted({index for candidate in chosen for index in _context(units, candidate.index)})
    run: list[int] = []
    for index in wanted:
        if run and not _joins(units, run[-1], index):
            yield tuple(units[it] for it in run)
            run = []
        run.append(index)
    yield tuple(units[it] for it in run)


def _joins(units: Sequence[Unit], before: int, index: int) -> bool:
    """Return whether a unit continues the quote that ends with another."""
    if index != before + 1:
        return False
    return units[before].block == units[index].block or units[before].text.endswith(":")


def _context(units: Sequence[Unit], index: int) -> range:
    """Return the units to quote with this one: the steps around a step, the code or list after a colon."""
    start, end = index, index + 1
    if units[index].kind is UnitKind.STEP:
        start, end = _list_around(units, index)
    elif units[index].text.endswith(":") and end < len(units) and units[end].kind in _ITEMS:
        end = _list_around(units, end)[1]
    elif units[index].text.endswith(":") and end < len(units):
        end += 1
    announced = units[start].kind is not UnitKind.SENTENCE and start > 0 and units[start - 1].text.endswith(":")
    return range(start - 1 if announced else start, end)


def _list_around(units: Sequence[Unit], index: int) -> tuple[int, int]:
    """Return the range (end exclusive) of an item's list, or only the item if the list is long."""
    start, end = index, index + 1
    while start > 0 and units[start - 1].kind in _ITEMS:
        start -= 1
    while end < len(units) and units[end].kind in _ITEMS:
        end += 1
    is_short = end - start <= _MAX_ITEMS and sum(len(unit.text) for unit in units[start:end]) <= _MAX_LIST_CHARACTERS
    return (start, end) if is_short else (index, index + 1)


def _repeated_in(units: Sequence[Unit], found: Sequence[Candidate], *, besides: int) -> tuple[int, ...]:
    """Return the other passages that contain all of these units."""
    numbers = sorted({candidate.passage.number for candidate in found} - {besides})
    texts = {unit.text for unit in units}
    return tuple(number for number in numbers if texts <= {it.unit.text for it in found if it.passage.number == number})


def render(quote: Quote) -> str:
    """Return a quote as Markdown, with its markers at the end."""
    markers = "".join(f"[{number}]" for number in quote.numbers)
    parts = [_part(kind, list(units)) for kind, units in groupby(quote.units, key=lambda unit: unit.kind)]
    # A marker needs a separate line after a fence or a table, or it would become part of it.
    gap = " " if quote.units[-1].kind in {UnitKind.SENTENCE, *_ITEMS} else "\n\n"
    return "\n\n".join(parts) + gap + markers


def _part(kind: UnitKind, units: Sequence[Unit]) -> str:
    if kind is UnitKind.CODE:
        return "\n\n".join(_fenced(unit.text) for unit in units)
    if kind is UnitKind.ROW:
        header = units[0].header or " | ".join("" for _ in units[0].text.split(" | "))
        rule = " | ".join("---" for _ in header.split(" | "))
        return "\n".join(f"> | {escape_markers(line)} |" for line in (header, rule, *(unit.text for unit in units)))
    separator = " " if kind is UnitKind.SENTENCE else "\n"
    return "> " + separator.join(escape_markers(unit.text) for unit in units).replace("\n", "\n> ")


def _fenced(code: str) -> str:
    max_length = max(map(len, _BACKTICKS.findall(code)), default=0)
    fence = "`" * max(_MIN_FENCE, max_length + 1)
    return f"{fence}\n{code}\n{fence}"
