"""Words that a misspelled word may be meant as: those within one letter of it. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

_MIN_LETTERS: Final = 5  #: Of a word that is meant: in shorter ones, one letter makes another word.
_MAX_LETTERS: Final = 30  #: What is longer is data.
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
#: Letters of languages besides those, by PostgreSQL's name of the language.
_ACCENTED: Final[Mapping[str, str]] = {
    "danish": "åæø",
    "dutch": "éëï",
    "finnish": "äö",
    "french": "àâçèéêëîïôùû",
    "german": "äöüß",
    "italian": "àèéìòù",
    "norwegian": "åæø",
    "portuguese": "àáâãçéêíóôõú",
    "spanish": "áéíñóúü",
    "swedish": "åäö",
}
#: A word in small letters, alone: no name, and no part of an identifier, an address or a hyphenated word.
_PLAIN: Final = re.compile(rf"(?<![^\s(\"'])[^\W\d_A-Z]{{{_MIN_LETTERS - 1},{_MAX_LETTERS}}}(?![^\s)\"'.,;:?!])")


def plain_words(text: str) -> Iterator[re.Match[str]]:
    """Yield the words of a text that may be corrected."""
    return _PLAIN.finditer(text)


def near_words(word: str, language: str) -> dict[str, int | None]:
    """Return what a word is with one letter otherwise, but not the first; with the place of a common slip, or None.

    A common slip swaps two letters, leaves one out, or doubles one. There are about 50 words for each letter, most of
    which are none. The last letter is never one too many: a word would be taken for a part of it.
    """
    letters = _LETTERS + _ACCENTED.get(language, "")
    halves = [(at, word[:at], word[at:]) for at in range(1, len(word))]
    swapped = {start + end[1] + end[0] + end[2:]: at for at, start, end in halves if len(end) > 1}
    longer = {start + letter + end: at for at, start, end in halves for letter in letters}
    single = {start + end[1:]: at for at, start, end in halves if start[-1] == end[0]}
    shorter = [start + end[1:] for _, start, end in halves[:-1]]
    replaced = [start + letter + end[1:] for _, start, end in halves for letter in letters]
    near = {**dict.fromkeys((*shorter, *replaced)), **swapped, **longer, **single}
    return {it: place for it, place in near.items() if len(it) >= _MIN_LETTERS and it != word}
