"""Which language a text is in: by its script, else by votes of the smallest, commonest words. Pure.

The names are those of PostgreSQL's text search configurations, and of a few languages that have none.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from importlib import resources
from typing import Final

#: A text's first characters are enough to tell.
_READ_CHARACTERS: Final = 4000
#: Fewer votes, or a lead over the next language of less than this factor, decide nothing.
_MIN_VOTES: Final = 2.0
_MIN_LEAD: Final = 1.2
#: Single letters stand in formulas and lists too, so that many different words of more than one have to vote.
_MIN_WORDS: Final = 3
#: Of prose, at least this share of the words votes for its language; of program text and tables, less.
_MIN_SHARE: Final = 0.08
_SCRIPT_SHARE: Final = 0.3

_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
#: Languages that one script stands for, the more telling scripts first: Japanese is written with Han signs as well.
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
#: Han and kana need no third of the letters: Latin names stand among them, and a sign is a whole word.
_SIGN_SHARE: Final = 0.15
_OF_SIGNS: Final = frozenset({"japanese", "chinese"})
#: A language on each line, and the words that vote for it.
_COMMON: Final = resources.files("retrieval.text").joinpath("common_words.txt").read_text(encoding="utf-8")


def language_of(text: str) -> str:
    """Return the language of a text in small letters, "english"; empty where nothing speaks for one.

    Too little text, program text and columns of numbers have no language.
    """
    words = [word.casefold() for word in _WORD.findall(text[:_READ_CHARACTERS])]
    letters = sum(map(len, words))
    if not letters:
        return ""
    joined = "".join(words)
    for language, script in _SCRIPTS.items():
        if len(script.findall(joined)) >= letters * (_SIGN_SHARE if language in _OF_SIGNS else _SCRIPT_SHARE):
            return _of_devanagari(words) if language == "hindi" else language
    return _voted(words)


def _of_devanagari(words: list[str]) -> str:
    return "nepali" if _voted(words) == "nepali" else "hindi"


def _voted(words: list[str]) -> str:
    """Return the language that the words vote for; a word of several languages gives each an equal part."""
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
    is_told = words_for[best] >= _MIN_WORDS and limit >= _MIN_VOTES and limit >= _MIN_LEAD * runner_up
    return best if is_told and hits[best] >= _MIN_SHARE * len(words) else ""


def _voters() -> dict[str, tuple[str, ...]]:
    votes: dict[str, tuple[str, ...]] = {}
    for line in _COMMON.splitlines():
        language, _, common = line.partition(": ")
        for word in common.split():
            votes[word] = (*votes.get(word, ()), language)
    return votes


_VOTES: Final = _voters()
#: The smallest words of all these languages, which say nothing about what a text is about.
COMMON_WORDS: Final = frozenset(_VOTES)
