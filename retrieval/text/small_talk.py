"""Greetings, thanks and the like, which ask for nothing. Pure."""

import re
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Final

from corecube.data import read_toml

_MAX_CHARACTERS: Final = 100
_CLAUSE_END: Final = re.compile(r"[,.!;:\N{EN DASH}]\s*|\s-\s")
_WORD: Final = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


def is_small_talk(text: str) -> bool:
    """Return whether a text is made of such phrases alone, in any of the languages that are known."""
    words = _words(text) if len(text) <= _MAX_CHARACTERS else ()
    return bool(words) and _is_made_of_phrases(words)


def after_small_talk(text: str) -> str:
    """Return a text without such phrases before it: "And for children?" of "OK, thanks. And for children?"."""
    start = 0
    for found in _CLAUSE_END.finditer(text[:_MAX_CHARACTERS]):
        if not is_small_talk(text[start : found.start()]):
            break
        start = found.end()
    return text[start:] or text


def is_thanks(text: str) -> bool:
    """Return whether such a text says thanks: "OK, thanks a lot. Bye!"."""
    words = _words(text)
    return is_small_talk(text) and any(
        words[at : at + len(phrase)] == phrase for phrase in _thanks() for at in range(len(words))
    )


def _is_made_of_phrases(words: Sequence[str]) -> bool:
    """Return whether some division of the words has only phrases."""
    ends = {0}  #: How many words phrases can take from the start.
    for end in range(1, len(words) + 1):
        if any(tuple(words[start:end]) in _phrases() for start in ends):
            ends.add(end)
    return len(words) in ends


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")))


@cache
def _phrases() -> frozenset[tuple[str, ...]]:
    return frozenset(map(_words, chain.from_iterable(read_toml("retrieval.text", "small_talk.toml").values())))


@cache
def _thanks() -> frozenset[tuple[str, ...]]:
    return frozenset(map(_words, read_toml("retrieval.text", "small_talk.toml")["thanks"]))
