"""The words, numbers and names of a text, normalized for a comparison. Pure."""

import re
from collections.abc import Callable
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_POSSESSIVE: Final = re.compile(r"['\u2019]s?\Z")
#: Digits with their separators: 48,200 and 48 200 and 3.5, but not the date 2026-03-05, which is three numbers.
_NUMBER: Final = re.compile(r"[0-9]+(?:[.,'\u2019\u00a0\u202f][0-9]+)*")
_GROUP: Final = re.compile(r"[.,'\u2019\u00a0\u202f](?=[0-9]{3}(?:[^0-9]|\Z))")
_SEPARATOR: Final = re.compile(r"[,'\u2019\u00a0\u202f]")
#: Maximum length of white space and quotation marks before a word.
_LOOK_BACK_CHARACTERS: Final = 64
_UNITS: Final = "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
_TENS: Final = {"twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "ninety": "90"}
_NUMBER_WORDS: Final = {word: str(number) for number, word in enumerate(_UNITS.split(), start=2)} | _TENS
#: With more capitalized words inside sentences, the language capitalizes its nouns.
_CAPITAL_NOUNS: Final = 0.2


def words_of(text: str) -> tuple[str, ...]:
    """Return the words in lower case, in order, without possessive endings."""
    return tuple(_POSSESSIVE.sub("", word).casefold() for word in _WORD.findall(text))


def numbers_of(text: str) -> frozenset[str]:
    """Return the numbers as plain decimals: "48,200" and "48200" are equal, "four" and "04" are 4."""
    written = {_decimal(found) for found in _NUMBER.findall(text)}
    return frozenset(written | {_NUMBER_WORDS[word] for word in words_of(text) if word in _NUMBER_WORDS})


def _decimal(written: str) -> str:
    plain = _SEPARATOR.sub(".", _GROUP.sub("", written))
    whole, _, part = plain.partition(".")
    return ".".join(filter(None, (whole.lstrip("0") or "0", part.rstrip("0"))))


def names_of(text: str, stem: Callable[[str], str]) -> frozenset[str]:
    """Return the stems of names: capitalized words inside a sentence, and words with inner capitals or digits."""
    words = [(found[0], found.start()) for found in _WORD.finditer(text)]
    inner = [word for word, start in words if not _starts_sentence(text, start)]
    capitals = [word for word in inner if word[0].isupper() and not word.isupper()]
    has_capital_nouns = len(capitals) > _CAPITAL_NOUNS * len(inner) and len(capitals) > 3  # noqa: PLR2004 -- a few are names
    named = {word for word, _ in words if _is_marked(word)}
    if not has_capital_nouns:
        named |= {word for word in capitals if len(word) > 1}
    return frozenset(stem(_POSSESSIVE.sub("", word).casefold()) for word in named)


def _starts_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - _LOOK_BACK_CHARACTERS) : start].rstrip(" \t\n\"'\u201c\u2018(*_")
    return not before or before[-1] in ".!?:;|\u2026\u2013\u2014-"


def _is_marked(word: str) -> bool:
    """Return whether a word is a name in any position: RIME, K5, deployCtl."""
    letters = [sign for sign in word if sign.isalpha()]
    inside = any(sign.isupper() for sign in word[1:])
    return bool(letters) and (inside or any(sign.isdigit() for sign in word)) and len(word) > 1
