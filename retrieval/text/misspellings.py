"""Words that a misspelled word may be meant as: those within one letter of it. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

_MIN_LETTERS: Final = 5  #: In shorter words, one letter makes another word.
_MAX_LETTERS: Final = 20  #: What is longer is data.
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
_PLAIN: Final = re.compile(
    rf"(?<![^\s(\"'«„“‘])[^\W\d_A-Z]{{{_MIN_LETTERS},{_MAX_LETTERS}}}(?![^\s)\"'»”’“.,;:?!…])"  # noqa: RUF001 -- quotation marks
)


class Near(NamedTuple):
    """How a word is one letter away from the typed one."""

    place: int  #: Index in the typed word of what differs.
    doubt: int  #: 0 if two letters are swapped, or one is doubled or single; 1 if one is left out; 2 for another.


def plain_words(text: str) -> Iterator[re.Match[str]]:
    """Yield the words of a text that may be corrected."""
    return _PLAIN.finditer(text)


def near_words(word: str, language: str) -> dict[str, Near]:
    """Return what a word is with one letter otherwise, but not the first.

    There are about 50 words for each letter, most of which are none. The last letter is never one too many: a word
    would be taken for a part of it.
    """
    letters = _LETTERS + _ACCENTED.get(language, "")
    halves = [(at, word[:at], word[at:]) for at in range(1, len(word) + 1)]
    inner = halves[:-1]
    swapped = {start + end[1] + end[0] + end[2:]: Near(at, 0) for at, start, end in inner if len(end) > 1}
    doubled = {start + start[-1] + end: Near(at, 0) for at, start, end in halves}
    single = {start + end[1:]: Near(at, 0) for at, start, end in inner if start[-1] == end[0]}
    longer = {start + letter + end: Near(at, 1) for at, start, end in halves for letter in letters}
    shorter = {start + end[1:]: Near(at, 2) for at, start, end in inner[:-1]}
    replaced = {start + letter + end[1:]: Near(at, 2) for at, start, end in inner for letter in letters}
    near = {**shorter, **replaced, **longer, **swapped, **doubled, **single}
    return {it: how for it, how in near.items() if len(it) >= _MIN_LETTERS and it != word}
