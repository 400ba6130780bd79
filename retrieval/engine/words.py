"""Finding the query's lexemes in a text, stemmed as PostgreSQL stemmed the query. Free of Django."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from threading import local
from typing import Final

import snowballstemmer  # type: ignore[import-untyped]

from retrieval.engine.types import Term

_WORD: Final = re.compile(r"[^\W_]+")
#: An identifier: "gan-0x66", or the "-4107" that PostgreSQL makes of RIME-4107.
_CODE: Final = re.compile(r"[a-z].*[0-9].*|-[0-9]{3,}")
_CACHED_STEMS: Final = 20_000


@cache
def stemmer(text_search_config: str) -> Callable[[str], str]:
    """Return the stemmer behind a PostgreSQL text search configuration; the identity without one."""
    if text_search_config not in snowballstemmer.algorithms():
        return str
    own = local()

    def stem(word: str) -> str:
        # Stemmers have state, so each thread has its own.
        if not hasattr(own, "stemmer"):
            own.stemmer = snowballstemmer.stemmer(text_search_config)
        stemmed: str = own.stemmer.stemWord(word)
        return stemmed

    # A stemmer written in Python takes 20 microseconds a word; passages repeat their words.
    return lru_cache(maxsize=_CACHED_STEMS)(stem)


@cache
def _accented() -> Mapping[str, str]:
    """Return the accented forms of each Latin, Greek and Cyrillic letter."""
    forms = defaultdict[str, str](str)
    for letter in map(chr, range(0xC0, 0x530)):
        forms[unicodedata.normalize("NFD", letter)[0]] += letter
    return forms


def initials(stems: Iterable[str]) -> str:
    """Return the letters that words with these stems begin with, in order: as the stem does, perhaps with an accent.

    "ol" is the stem of "Öl".
    """
    letters = {stem[0] for stem in stems}
    return "".join(sorted(letters.union(*(_accented().get(it, "") for it in letters))))


@dataclass(frozen=True)
class TermFinder:
    """Finds the query's terms in a text."""

    terms: tuple[Term, ...]
    stem: Callable[[str], str]

    @cached_property
    def _bare(self) -> tuple[tuple[str, str, bool], ...]:
        """Each lexeme as texts hold it, and whether it is one word.

        Lexemes of compounds, versions and addresses ("on-cal", "3.6") hold signs that words do not. PostgreSQL reads a
        minus before the number of "RIME-4107".
        """
        pairs = ((term.lexeme, term.lexeme.lstrip("-") or term.lexeme) for term in self.terms)
        return tuple((lexeme, bare, _WORD.fullmatch(bare) is not None) for lexeme, bare in pairs)

    @cached_property
    def _initials(self) -> tuple[str, ...]:
        return tuple(initials(bare for _, bare, _ in self._bare))

    def found(self, text: str) -> frozenset[str]:
        """Return the lexemes in the text."""
        if not self.terms:
            return frozenset()
        lowered = text.lower()
        stems = {self.stem(word) for word in set(_WORD.findall(lowered)) if word.startswith(self._initials)}
        return frozenset(
            [lexeme for lexeme, bare, is_word in self._bare if (bare in stems if is_word else bare in lowered)]
        )

    def codes(self) -> frozenset[str]:
        """Return the terms that are codes: names with digits in them."""
        return frozenset(term.lexeme for term in self.terms if _CODE.fullmatch(term.lexeme))

    def weight(self, lexemes: frozenset[str]) -> float:
        """Return the summed idf of lexemes."""
        return sum(term.idf for term in self.terms if term.lexeme in lexemes)
