"""What a text states: its words without values, and its values: numbers, dates, times, and whether it denies. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum, auto
from functools import cache, lru_cache
from typing import Final

from retrieval.engine.words import stemmer
from retrieval.ranking.answerability.signals import denials
from retrieval.ranking.quotes.asked import cues
from retrieval.ranking.quotes.quantities import is_year, unit_beside, unit_of
from retrieval.text.language import common_words
from retrieval.text.numbers import in_english

_CACHED_TEXTS: Final = 4_000
_CACHED_WORDS: Final = 20_000
_VALUE: Final = "#"  #: Begins the token that stands for a value.
DATE: Final = "date"
TIME: Final = "time"
_CALENDAR: Final = "calendar year"  #: A year such as 2026, which is no value.
_THOUSANDS: Final = re.compile(r"[,\u00a0\u202f'\u2019](?=\d{3}(?!\d))")
_DIGIT: Final = re.compile(r"\d")
_WORD: Final = re.compile(r"[^\W_][\w]*(?:['\u2019-]\w+)*")
_ENDS: Final = ".!?:|\n"  #: Behind these a capital tells nothing.
_OPENS: Final = " \t\"'\u201c(*"
_LOOK_BACK: Final = 8

Value = tuple[float | None, ...]  #: A number; hour and minute; or year, month and day, None where unknown.


@dataclass(frozen=True, slots=True)
class Statement:
    """A text as a frame of words with values in it."""

    tokens: tuple[str, ...]  #: Stems in order; "#day" stands for a number of days, "#date" for a date.
    values: tuple[Value, ...]  #: The values of the tokens that stand for one, in order.
    words: frozenset[str]  #: The stems that say what it is about.
    names: frozenset[str]  #: Those of them that are names or codes.
    years: frozenset[int]
    denies: bool

    @property
    def slots(self) -> tuple[str, ...]:
        """What each value measures: a unit, "date", "time", or nothing known."""
        return tuple(token[1:] for token in self.tokens if token.startswith(_VALUE))

    def differences(self, other: "Statement") -> tuple[tuple[int, Value, Value], ...]:
        """Return the values that stand at the same places of both and differ, with their index among this one's."""
        return tuple((at, one, two) for at, one, two in self._aligned(other) if _differ(one, two))

    def _aligned(self, other: "Statement") -> list[tuple[int, Value, Value]]:
        places = [[at for at, token in enumerate(it.tokens) if token.startswith(_VALUE)] for it in (self, other)]
        if self.slots == other.slots:
            return list(zip(range(len(self.values)), self.values, other.values, strict=True))
        blocks = SequenceMatcher(None, self.tokens, other.tokens, autojunk=False).get_matching_blocks()
        met = {block.a + step: block.b + step for block in blocks for step in range(block.size)}
        return [
            (index, self.values[index], other.values[places[1].index(met[at])])
            for index, at in enumerate(places[0])
            if at in met
        ]


def _differ(one: Value, other: Value) -> bool:
    return any(a is not None and b is not None and a != b for a, b in zip(one, other, strict=True))


@lru_cache(maxsize=_CACHED_TEXTS)
def statement(text: str, language: str) -> Statement:
    """Return what a text in a text search configuration's language states."""
    text = in_english(text, language)
    tokens: list[str] = []
    values: list[Value] = []
    words, names, years = set[str](), set[str](), set[int]()
    denied = 0
    for found in _words_and_values(text):
        word = found[0]
        role, stemmed, numeral = (_Role.VALUE, "", 0.0) if found.lastgroup else _read(word.lower(), language)
        if role is _Role.VALUE:
            kind, value = _value(found) if found.lastgroup else (unit_beside(text, *found.span()), (numeral,))
            if kind == _CALENDAR:
                years.add(int(value[0] or 0))
                continue
            tokens.append(_VALUE + kind)
            values.append(value)
            years |= {int(value[0])} if kind == DATE and value[0] else set()
        elif role is _Role.DENIAL:
            denied += 1
        elif role is not _Role.NOTHING:
            tokens.append(stemmed)
            if role is _Role.SUBJECT:
                words.add(stemmed)
                if not (word.islower() and word.isalpha()) and _is_name(found):
                    names.add(stemmed)
    return Statement(
        tuple(tokens), tuple(values), frozenset(words), frozenset(names), frozenset(years), denies=denied % 2 == 1
    )


@lru_cache(maxsize=_CACHED_TEXTS)
def stems(text: str, language: str) -> frozenset[str]:
    """Return the stems of a text, in a third of the time of `statement`, whose tokens and words are among them."""
    stem = stemmer(language)
    return frozenset([stem(found[0].lower()) for found in _words_and_values(text)])


def _words_and_values(text: str) -> Iterator[re.Match[str]]:
    # Everything but words has a digit.
    return (_tokens() if _DIGIT.search(text) else _WORD).finditer(text)


class _Role(Enum):
    """What a word is for a statement."""

    VALUE = auto()  #: A numeral.
    DENIAL = auto()
    NOTHING = auto()  #: A word that affirms.
    LIGHT = auto()  #: A word of the frame that says nothing about the subject.
    SUBJECT = auto()


@lru_cache(maxsize=_CACHED_WORDS)
def _read(token: str, language: str) -> tuple[_Role, str, float]:
    """Return what a lower-case word is, its stem, and the number of a numeral."""
    no, yes, light = _statements()
    if token in _numerals():
        return _Role.VALUE, "", _numerals()[token]
    if token in no or token in denials(language) or token.endswith("n't"):
        return _Role.DENIAL, "", 0.0
    if token in yes:
        return _Role.NOTHING, "", 0.0
    is_light = token in light or token in common_words(language) or bool(unit_of(token))
    return (_Role.LIGHT if is_light else _Role.SUBJECT), stemmer(language)(token), 0.0


def _is_name(found: re.Match[str]) -> bool:
    word = found[0]
    if any(map(str.isdigit, word)) or any(map(str.isupper, word[1:])):
        return True
    before = found.string[max(0, found.start() - _LOOK_BACK) : found.start()].rstrip(_OPENS)
    return word[0].isupper() and bool(before) and before[-1] not in _ENDS


def _value(found: re.Match[str]) -> tuple[str, Value]:
    """Return what a token that is no word measures, and its value."""
    part = found.groupdict()
    if part["iso"]:
        year, month, day = map(int, part["iso"].split("-"))
        return DATE, (year, month, day)
    if month_name := part["month"] or part["month_first"]:
        days, years = part["day"] or part["day_behind"], part["year"] or part["year_behind"]
        return DATE, (int(years) if years else None, months()[month_name.lower()], int(days) if days else None)
    if part["dotted"]:
        day, month, year = map(int, part["dotted"].split("."))
        return DATE, (year, month, day)
    if part["clock"]:
        hour, minute = map(int, part["clock"].split(":"))
        return TIME, (hour, minute)
    value = float(_THOUSANDS.sub("", part["number"]).replace(",", ".").replace("\u2212", "-"))
    unit = unit_beside(found.string, *found.span())
    is_plain_year = not unit and len(part["number"]) == len("2026") and is_year(value)
    return (_CALENDAR if is_plain_year else unit), (value,)


@cache
def _tokens() -> re.Pattern[str]:
    names = "|".join(sorted(map(re.escape, months()), key=len, reverse=True))
    year = r"(?:19|20)\d\d(?!\d)"
    return re.compile(
        # Most words are no values: only digits, signs, and words before a digit are tried against their forms.
        r"(?=[-\u2212+\d]|[^\W\d_]+\s\d)(?:"
        rf"(?P<iso>\b{year}-\d\d-\d\d\b)"
        rf"|\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s(?P<month>{names})\b(?:,?\s(?P<year>{year}))?"
        rf"|\b(?P<month_first>{names})\s(?:(?P<day_behind>\d{{1,2}})(?:st|nd|rd|th)?(?![\d.:])(?:,\s(?P<year_behind>{year}))?|(?=(?:19|20)\d\d\b))"
        rf"|\b(?P<dotted>\d{{1,2}}\.\d{{1,2}}\.{year})"
        r"|\b(?P<clock>\d{1,2}:\d\d)\b"
        r"|(?<![\w.,])(?P<number>(?:(?<!\d)[-\u2212+])?(?:\d{1,3}(?:[,\u00a0\u202f'\u2019]\d{3})+(?!\d)|\d{1,12})(?:\.\d+|,\d{1,2}(?!\d))?)(?![\w]))"
        rf"|{_WORD.pattern}",
        re.IGNORECASE,
    )


@cache
def months() -> dict[str, int]:
    """Return the number of each month by its names, in lower case."""
    return {name: int(number) for number, names in cues()["months"].items() for name in names}


@cache
def _numerals() -> dict[str, float]:
    return {word: float(number) for number, words in cues()["numerals"].items() for word in words}


@cache
def _statements() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    table = cues()["statements"]
    return frozenset(table["no"]), frozenset(table["yes"]), frozenset(table["light"])
