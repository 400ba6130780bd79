"""Language detection, by script or else by votes of the most common short words. Pure.

The names are those of PostgreSQL's text search configurations, and of a few languages without one.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

from corecube.data import read_toml

_MAX_CHARACTERS: Final = 4000
_MIN_VOTES: Final = 2.0  #: Minimum votes, and minimum factor over the next language, for a decision.
_MIN_LEAD: Final = 1.2
#: Minimum number of different words of more than one letter: single letters occur in formulas and lists too.
_MIN_WORDS: Final = 3
#: Minimum share of the words that vote for the language: prose has it, code and tables do not.
_MIN_SHARE: Final = 0.08
_SCRIPT_SHARE: Final = 0.3
_MIN_LETTERS: Final = 4  #: Of a question: fewer letters of another script are symbols and units.

_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
#: Languages with a script, most specific scripts first: Japanese also uses Chinese characters.
_SCRIPTS: Final[Mapping[str, re.Pattern[str]]] = {
    "japanese": re.compile("[\u3040-\u30ff]"),
    "korean": re.compile("[\uac00-\ud7af\u1100-\u11ff]"),
    "chinese": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),
    "thai": re.compile("[\u0e00-\u0e7f]"),
    "tamil": re.compile("[\u0b80-\u0bff]"),
    "armenian": re.compile("[\u0530-\u058f]"),
    "greek": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "hebrew": re.compile("[\u0590-\u05ff]"),
    "arabic": re.compile("[\u0600-\u06ff]"),
    "hindi": re.compile("[\u0900-\u097f]"),
}
#: Chinese and Japanese need a smaller share: texts contain Latin names, and one character is an entire word.
_CJK_SHARE: Final = 0.15
_CJK: Final = frozenset({"japanese", "chinese"})
_COMMON: Final = resources.files("retrieval.text").joinpath("common_words.txt").read_text(encoding="utf-8")


def language_of(text: str) -> str:
    """Return the language in lower case, "english"; empty if not detected, as for short text, code and numbers."""
    words = [word.casefold() for word in _WORD.findall(text[:_MAX_CHARACTERS])]
    letters = sum(map(len, words))
    if not letters:
        return ""
    joined = "".join(words)
    for language, script in _SCRIPTS.items():
        if len(script.findall(joined)) >= letters * (_CJK_SHARE if language in _CJK else _SCRIPT_SHARE):
            return "nepali" if language == "hindi" and _voted(words) == "nepali" else language
    return _voted(words)


@cache
def common_words(language: str) -> frozenset[str]:
    """Return the most frequent words of a language, such as "english"; none for an unknown language."""
    lines = (line.partition(": ") for line in _COMMON.splitlines())
    return next((frozenset(words.split()) for name, _, words in lines if name == language), frozenset())


def _voted(words: list[str]) -> str:
    """Return the language that the words vote for; a word in several languages splits its vote equally."""
    votes: defaultdict[str, float] = defaultdict(float)
    hits: Counter[str] = Counter()
    words_for: Counter[str] = Counter()
    for word, times in Counter(words).items():
        languages = _VOTES.get(word, ())
        for language in languages:
            votes[language] += times / len(languages)
            hits[language] += times
            words_for[language] += len(word) > 1
    ranked = sorted(votes.items(), key=lambda vote: (-vote[1], vote[0]))
    (best, limit), (_, runner_up) = (*ranked[:2], ("", 0.0), ("", 0.0))[:2]
    is_clear = words_for[best] >= _MIN_WORDS and limit >= _MIN_VOTES and limit >= _MIN_LEAD * runner_up
    return best if is_clear and hits[best] >= _MIN_SHARE * len(words) else ""


def _voters() -> dict[str, tuple[str, ...]]:
    votes: dict[str, tuple[str, ...]] = {}
    for line in _COMMON.splitlines():
        language, _, common = line.partition(": ")
        for word in common.split():
            votes[word] = (*votes.get(word, ()), language)
    return votes


_VOTES: Final = _voters()
#: The words that begin a short question, and others of it, by language.
_QUESTION_WORDS: Final = {
    language: (frozenset(words["first"].split()), frozenset(words["other"].split()))
    for language, words in read_toml("retrieval.text", "question_words.toml").items()
}
COMMON_WORDS: Final = frozenset(_VOTES)  #: The common short words of all these languages, which carry no content.


def question_language(text: str) -> str:
    """Return the language of a question, as `language_of` does, also of a short one; empty in doubt.

    A short question is in a language if it begins with one of its question words and has another of its words. Words of
    English count against all other languages, so that foreign names in an English question do not decide.
    """
    words = [word.casefold().replace("\u2019", "'") for word in _WORD.findall(text[:_MAX_CHARACTERS])]
    long = {word for word in words if len(word) > 1}
    found = {language: len(long & (first | other)) for language, (first, other) in _QUESTION_WORDS.items()}
    english = found["english"]
    best = max(found, key=lambda language: found[language])
    is_clear = sorted(found.values())[-2] < found[best]
    if sum(map(len, words)) < _MIN_LETTERS:
        return ""
    if (
        is_clear
        and found[best] > (1 if best == "english" else max(1, 2 * english))
        and words[0] in _QUESTION_WORDS[best][0]
    ):
        return best
    language = language_of(text)
    return language if language == "english" or found.get(language, 1) > 2 * english else ""
