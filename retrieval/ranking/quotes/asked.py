"""What a question asks for (a number, a date, steps, ...), and whether a text holds such an answer. Pure."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, Final

from retrieval.text.language import common_words

_YEAR: Final = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_CLOCK: Final = re.compile(r"\b\d{1,2}:\d\d\b|\b\d{1,2} ?[ap]\.?m\b", re.IGNORECASE)
_DAY: Final = re.compile(r"\b\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b")
#: Two capitalised words in a row, as names of persons are.
_NAME: Final = re.compile(r"\b(?P<first>[^\W\d_a-z][\w'’-]+) (?:[^\W\d_a-z]\. )?[^\W\d_a-z][\w'’-]+")  # noqa: RUF001 -- an apostrophe


class Asked(StrEnum):
    """What a question asks for; one question can ask for several."""

    NUMBER = "number"
    DATE = "date"
    DURATION = "duration"
    PERSON = "person"
    LIST = "list"
    STEPS = "steps"
    PERMISSION = "permission"  #: Yes or no.
    DEFINITION = "definition"


#: What can be seen in a single unit of text.
FORMS: Final = frozenset({Asked.NUMBER, Asked.DATE, Asked.DURATION, Asked.PERSON, Asked.PERMISSION})


def asked(question: str, language: str) -> frozenset[Asked]:
    """Return what a question asks for, by its words; nothing for a language without cues."""
    text = question.lower()
    # "May I?" is answered by yes or no, "How many may I?" is not.
    return frozenset(
        kind
        for kind, words in _patterns(language, "asked").items()
        if (words.match(text) if kind is Asked.PERMISSION else words.search(text))
    )


def holds(kind: Asked, text: str, language: str) -> bool:
    """Return whether a text holds the form of an answer of this kind, one of `FORMS`."""
    words = _patterns(language, "held").get(kind)
    has_word = words is not None and words.search(text.lower()) is not None
    if kind is Asked.NUMBER:
        return has_word or any(map(str.isdigit, text))
    if kind is Asked.DURATION:
        return has_word
    if kind is Asked.DATE:
        return has_word or any(form.search(text) for form in (_YEAR, _CLOCK, _DAY))
    if kind is Asked.PERSON:
        # German nouns have capitals: "Die Kantine" is no name.
        articles = common_words(language) if language == "german" else frozenset[str]()
        return any(found["first"].lower() not in articles for found in _NAME.finditer(text))
    return has_word


@cache
def cues() -> Mapping[str, Any]:
    """Return the tables of `cues.toml`."""
    return tomllib.loads((files("retrieval.ranking.quotes") / "cues.toml").read_text(encoding="utf-8"))


@cache
def _patterns(language: str, table: str) -> Mapping[Asked, re.Pattern[str]]:
    return {Asked(kind): any_of(phrases) for kind, phrases in cues().get(language, {}).get(table, {}).items()}


def any_of(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of one of these phrases; one of letters only as whole words."""
    return re.compile("|".join(f"{_edge(it[0], '<')}{re.escape(it)}{_edge(it[-1], '')}" for it in phrases))


def _edge(sign: str, side: str) -> str:
    return rf"(?{side}!\w)" if sign.isalpha() else ""
