"""Which row of a table a number in a question picks: "20,000 euros" lies in the row "up to 50,000". Pure."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final

from retrieval.ranking.quotes.asked import any_of, cues
from retrieval.text.language import common_words
from retrieval.text.numbers import in_english

#: With its sign, but not within a word or a code ("RIME-4107"); a hyphen between two numbers is no sign ("1-3").
_DIGITS: Final = (
    r"(?:(?<![\w.,])[-\u2212+]|(?<![\w.,\-])|(?<=\d-))"
    r"(?:\d{1,3}(?:[,\u00a0\u202f'\u2019]\d{3}){1,4}(?!\w)|\d{1,12}(?!\d))(?:\.\d+)?"
)
#: What a word or sign behind a number multiplies it by.
_MULTIPLES: Final = {word: 10.0 ** int(power) for power, words in cues()["multiples"].items() for word in words}
_NUMBER: Final = re.compile(
    rf"(?P<number>{_DIGITS})(?:(?P<multiple>k| ?(?i:{'|'.join(map(re.escape, _MULTIPLES))}))(?!\w))?"
)
_MONTHS: Final = "|".join(name for names in cues()["months"].values() for name in names)
#: Also with the month as a word, behind or before the day or the year: "5 may attend" is no date.
_DATE: Final = re.compile(
    r"\d{1,4}(?P<sign>[-/.])\d{1,2}(?P=sign)\d{1,4}"
    rf"|\d\.? (?:{_MONTHS})\.?(?= \d{{4}}| to\b| bis\b|[ ]?[,;)\u2013-]|$)"
    rf"|\b(?:{_MONTHS})\.? (?:\d{{4}}|\d{{1,2}}(?:st|nd|rd|th)?(?:,|$))",
    re.IGNORECASE,
)
_SEPARATORS: Final = re.compile(r"[,\u00a0\u202f'\u2019]")
_WORD: Final = re.compile(r"[^\W\d_]+|[°$€£%]+[^\W\d_]?")
_WORD_BEFORE: Final = re.compile(r"(?<![^\W_])([^\W\d_]{2,20}) \Z")
_LOOK_BACK: Final = 24  #: Characters before a number in which the word before it is.
_DECIMALS: Final = 6
_THOUSAND: Final = 1000.0  #: "20k", written together and small: "4 K" is something else.
_MIN_INTERVALS: Final = 2
_MAX_UNIT_WORDS: Final = 3  #: Words behind a number of a question that may name its unit: "4 cluster manager nodes".
_FIRST_YEAR: Final = 1900
_LAST_YEAR: Final = 2100


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of a question with the words that may be its unit."""

    value: float
    units: frozenset[str]
    text: str  #: As it is written, without a multiple.
    label: str  #: The word before it, of which it may be the number: "week 25"; empty for a common word.
    words: frozenset[str]  #: The words of the question.

    @property
    def is_year(self) -> bool:
        """Whether it is a year: then only an equal number fits."""
        return not self.units & _names_of_units() and self.value.is_integer() and is_year(self.value)


@dataclass(frozen=True, slots=True)
class Interval:
    """The numbers that a cell stands for, both ends included."""

    low: float
    high: float
    units: frozenset[str]
    is_limit: bool = False  #: Whether words make it one: "100-184" may be a code.

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def quantities(question: str, language: str) -> tuple[Quantity, ...]:
    """Return the numbers of a question in a language, except those within codes."""
    text = in_english(question, language)
    words = _words(text) - common_words(language)
    return tuple(
        Quantity(
            _value(found),
            _units_around(text, found, _MAX_UNIT_WORDS),
            found["number"],
            _label(text, found.start(), language),
            words,
        )
        for found in _NUMBER.finditer(text)
    )


def unit_beside(text: str, start: int, end: int) -> str:
    """Return the name of the unit of measurement directly before ("€ 20") or behind a number; empty without one."""
    before = _WORD.findall(text[max(0, start - 4) : start])[-1:]
    behind = _WORD.match(text[end : end + 40].lstrip("- \u00a0\u202f"))
    words = (*(word for word in before if not word[0].isalpha()), *([behind[0]] if behind else ()))
    return next((unit for unit in map(_unit, words) if unit in _names_of_units()), "")


def unit_of(word: str) -> str:
    """Return the name of the unit of measurement that a word spells; empty for another word."""
    return _spellings().get(word.lower(), "")


def interval(cell: str, header: str, language: str) -> Interval | None:
    """Return the numbers that a cell of a table in a language stands for, None without a number and for a date.

    A bound may be in the cell ("over 5 years", "-25 °C and colder", "1 to 3") or in the header ("Orders up to").
    """
    cell = in_english(cell, language)
    numbers = list(_NUMBER.finditer(cell))
    if not numbers or _DATE.search(cell):
        return None
    first, value = numbers[0], _value(numbers[0])
    units = frozenset[str]().union(*(_units_around(cell, it, 1) for it in numbers[:2])) or _units_of(header)
    between = cell[first.end() : numbers[1].start()] if len(numbers) > 1 else ""
    if between and _is(between, "between"):
        second = _value(numbers[1])
        if not first["multiple"] and value * _multiple(numbers[1]) <= second:  # "1 to 5 million"
            value *= _multiple(numbers[1])
        return Interval(min(value, second), max(value, second), units, any(map(str.isalpha, between)))
    around = f"{cell[: first.start()]} | {cell[first.end() :]}"
    for text in (around, header):
        if _is(text, "high"):
            return Interval(-math.inf, value, units, is_limit=True)
        if _is(text, "low"):
            return Interval(value, math.inf, units, is_limit=True)
    return Interval(value, value, units)


def picked(
    rows: Sequence[Sequence[str]], header: Sequence[str], asked: Sequence[Quantity], language: str
) -> int | None:
    """Return the row that the numbers of a question pick, None if they pick none or all.

    A row fits if one of its cells has the number's unit and stands for an interval with the number in it. Of those that
    fit most numbers, and of these have most words of the question, the narrowest interval wins; several that are equal
    pick none. Only a column that gives at least two different intervals, and one in half of the rows, can pick. A
    column that is named like the number comes first, as *Week* for "week 25"; a number that is part of a name in the
    table, as "zone 3", picks nothing.
    """
    texts = [cell.lower() for row in (header, *rows) for cell in row]
    free = [it for it in asked if not it.label or not any(_names(it, text) for text in texts)]
    columns = range(len(header))
    named = [(it, column) for it in free for column in columns if _is_labelled(it, header[column])]
    every = [(it, column) for it in free for column in columns]
    intervals = [_intervals(column, rows, header[column], language) for column in columns] if free else []
    fitting = {
        (it, column): {at: cell for at, cell in intervals[column].items() if _fits(it, cell, header[column])}
        for it, column in every
    }
    cells = next((found for pair in (*named, *every) if (found := fitting[pair])), {})

    def key(row: int) -> tuple[float, ...]:
        fits = len({it for (it, _), found in fitting.items() if row in found})
        shared = len(asked[0].words & _words(" ".join(rows[row])))
        return -fits, -shared, cells[row].high - cells[row].low, cells[row].high, -cells[row].low

    best, *others = sorted(cells, key=key) or (None,)
    return None if best is None or (others and key(others[0]) == key(best)) else best


def _intervals(column: int, rows: Sequence[Sequence[str]], header: str, language: str) -> dict[int, Interval]:
    """Return what the cells of a column stand for, by row; nothing where the column cannot pick."""
    cells = ((at, interval(row[column], header, language)) for at, row in enumerate(rows) if column < len(row))
    found = {at: cell for at, cell in cells if cell}
    return found if len(set(found.values())) >= _MIN_INTERVALS and 2 * len(found) >= len(rows) else {}


def _is_labelled(quantity: Quantity, header: str) -> bool:
    """Return whether a column is named like a number of the question."""
    return bool(quantity.label) and _unit(quantity.label) in _words(header)


def _names(quantity: Quantity, text: str) -> bool:
    """Return whether a text in lower case holds a number behind the word that it has in the question."""
    words = [word.strip("()[],.:;") for word in text.split()]
    return (quantity.label, quantity.text) in pairwise(words)


def _fits(quantity: Quantity, cell: Interval, header: str) -> bool:
    if quantity.value not in cell:
        return False
    if quantity.is_year:
        return cell.low == cell.high
    if _is_labelled(quantity, header):
        return True
    known = quantity.units & _names_of_units()
    if known:
        return bool(known & (cell.units | _units_of(header)))
    # A number without a known unit: its words must be those of the column, or the cell a limit.
    return bool(quantity.units & (cell.units | _words(header))) or cell.is_limit


def _value(found: re.Match[str]) -> float:
    number = float(_SEPARATORS.sub("", found["number"]).replace("\u2212", "-"))
    return round(number * _multiple(found), _DECIMALS)


def _multiple(found: re.Match[str]) -> float:
    word = (found["multiple"] or "").strip().lower()
    return _THOUSAND if word == "k" else _MULTIPLES.get(word, 1)


def _label(text: str, start: int, language: str) -> str:
    before = _WORD_BEFORE.search(text[max(0, start - _LOOK_BACK) : start])
    word = before[1].lower() if before else ""
    return "" if word in common_words(language) or word in _relations() else word


def _units_around(text: str, number: re.Match[str], count: int) -> frozenset[str]:
    """Return the names of units directly before a number ("€ 20") and in the words behind it."""
    before = _WORD.findall(text[max(0, number.start() - 4) : number.start()])
    behind = _WORD.findall(text[number.end() : number.end() + 40])[:count]
    signs = [word for word in before[-1:] if not word[0].isalpha()]
    return frozenset(_unit(word) for word in (*signs, *behind))


def _units_of(text: str) -> frozenset[str]:
    return _words(text) & _names_of_units()


def _words(text: str) -> frozenset[str]:
    return frozenset(map(_unit, _WORD.findall(text)))


def _unit(word: str) -> str:
    lowered = word.lower()
    return _spellings().get(lowered, lowered.removesuffix("s"))


def _is(text: str, bound: str) -> bool:
    if bound == "between":
        return text.strip(" °C$€£%").lower() in _bounds()[bound]
    return _pattern(bound).search(text.lower()) is not None


def is_year(value: float) -> bool:
    """Return whether a number can be a year."""
    return _FIRST_YEAR <= value <= _LAST_YEAR


@cache
def _pattern(bound: str) -> re.Pattern[str]:
    return any_of(_bounds()[bound])


@cache
def _bounds() -> Mapping[str, frozenset[str]]:
    return {bound: frozenset(words) for bound, words in cues()["bounds"].items()}


@cache
def _relations() -> frozenset[str]:
    """Return words before a number that relate to it, and name nothing."""
    bounds = (word for phrases in _bounds().values() for phrase in phrases for word in phrase.split())
    return frozenset({*bounds, *cues()["relations"]["words"]})


@cache
def _spellings() -> Mapping[str, str]:
    return {spelling: unit for unit, spellings in cues()["units"].items() for spelling in spellings}


@cache
def _names_of_units() -> frozenset[str]:
    return frozenset(cues()["units"])
