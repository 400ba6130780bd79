"""Compound words: what they may consist of, and what words may form. Pure.

"Urlaubstage" is about days of leave, but shares no lexeme with "30 Tage Urlaub".
"""

from collections.abc import Iterator, Mapping
from typing import Final

#: What joins the stems of a compound, by PostgreSQL's name of the language.
_LINKS: Final[Mapping[str, tuple[str, ...]]] = {
    "german": ("", "s", "n", "en", "es", "e", "er", "ns"),
    "dutch": ("", "s", "e", "en", "er"),
    "danish": ("", "s", "e"),
    "norwegian": ("", "s", "e"),
    "swedish": ("", "s"),
}
_MIN_LENGTH: Final = 3  #: Letters of a part.
_MAX_LENGTH: Final = 60  #: Letters of a compound.


def has_compounds(language: str) -> bool:
    """Return whether a language writes compounds as one word."""
    return language in _LINKS


def parts(lexeme: str, language: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of lexemes that a compound may consist of, those first whose shorter part is longest."""
    if len(lexeme) > _MAX_LENGTH or not lexeme.isalpha():
        return
    for place in sorted(range(_MIN_LENGTH, len(lexeme) - _MIN_LENGTH + 1), key=lambda it: -min(it, len(lexeme) - it)):
        head, tail = lexeme[:place], lexeme[place:]
        for link in _LINKS.get(language, ()):
            if head.endswith(link) and place - len(link) >= _MIN_LENGTH:
                yield head.removesuffix(link), tail


def joined(one: str, other: str, language: str) -> Iterator[str]:
    """Yield the lexemes of the compounds that two words may form, in either order."""
    if min(len(one), len(other)) < _MIN_LENGTH or not f"{one}{other}".isalpha():
        return
    for link in _LINKS.get(language, ()):
        yield f"{one}{link}{other}"
        yield f"{other}{link}{one}"
