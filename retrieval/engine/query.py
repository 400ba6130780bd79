"""Parsing a query: the part that retrieval reads, its search syntax, and the plain text. No Django.

The syntax is that of web searches: "a phrase" in quotes, -word or -"a phrase" to exclude, and OR in capitals.
A minus before a number or inside a word, and an unmatched quote, are not syntax.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from retrieval.engine.state import Query
from retrieval.engine.types import Correction
from retrieval.text.misspellings import plain_words

_MAX_CUT: Final = 5  #: A cut may drop one part in this many to end at a word.
_JOINERS: Final = frozenset("\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}")
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
#: Quotes as phones and word processors write them.
_CURLY: Final = str.maketrans(dict.fromkeys("\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}„", '"'))
_TOKEN: Final = re.compile(r'(?<!\S)(?P<minus>-?)"(?P<phrase>[^"]*)"(?!\w)|(?<!\S)-(?P<excluded>[^\W\d][^\s"]*)|\S+')
_WORD: Final = re.compile(r"\w")
_BLANK: Final = re.compile(r"(?=\s)")
_MINUS_WORD: Final = re.compile(r"^-(?=[^\W\d])")
_OR: Final = "OR"


@dataclass(frozen=True, slots=True)
class Clause:
    """A word or phrase of a query, or an OR between two of them."""

    text: str
    is_phrase: bool = False
    is_excluded: bool = False

    @property
    def is_or(self) -> bool:
        """Whether it joins its neighbours."""
        return self.text == _OR and not self.is_phrase

    @property
    def words(self) -> list[str]:
        """The words without syntax."""
        bare = (_MINUS_WORD.sub("", word) for word in self.text.replace('"', " ").split())
        return [word for word in bare if word != _OR]


def read_query(text: str, *, characters: int) -> Query:
    """Return the query with its first `characters`, which retrieval reads, and their plain text.

    A query with only exclusions excludes nothing: its words are searched. Never raises.
    """
    read = cut(unicodedata.normalize("NFC", text), characters)  # As documents are stored.
    clauses = _joined(list(_clauses(read.translate(_CURLY))))
    wanted = [clause for clause in clauses if not clause.is_excluded and not clause.is_or]
    if not _has_words(wanted):
        wanted = [clause for clause in clauses if not clause.is_or]
        return Query(text, read, _plain(wanted) if any(it.is_excluded for it in wanted) else read)
    if not any(clause.is_phrase or clause.is_excluded or clause.is_or for clause in clauses):
        return Query(text, read, read)
    return Query(text, read, _plain(wanted), " ".join(map(_written, clauses)))


def corrected(query: Query, corrections: Sequence[Correction]) -> Query:
    """Return a query without operators with corrected words in what is searched for; what was sent stays."""
    return replace(query, plain_text=respelled(query.for_models, corrections))


def respelled(text: str, corrections: Sequence[Correction]) -> str:
    """Return a text with corrected words."""
    meant = {it.typed: it.meant for it in corrections}
    for word in reversed(list(plain_words(text)) if meant else ()):
        text = text[: word.start()] + meant.get(word[0], word[0]) + text[word.end() :]
    return text


def clauses_of(query: Query) -> list[Clause]:
    """Return the clauses of a query in order; without operators, its words."""
    if query.operators:
        return _joined(list(_clauses(query.retrieval_text.translate(_CURLY))))
    return [Clause(word) for word in query.for_models.split()]


def cut(text: str, characters: int) -> str:
    """Return the first characters of a text, up to a word if one ends near the limit; no letter or emoji is split."""
    if len(text) <= characters:
        return text
    end = characters
    # A mark, a joiner or a skin tone belongs to the character before it.
    while end > 0 and (
        unicodedata.category(text[end]).startswith("M")
        or text[end] in _JOINERS
        or ord(text[end]) in _SKIN_TONES
        or text[end - 1] in _JOINERS
    ):
        end -= 1
    beginning = text[: end or characters]
    if not text[end].isspace():
        *before, _ = _BLANK.split(beginning)
        shorter = "".join(before)
        if len(shorter) >= characters - characters // _MAX_CUT:
            beginning = shorter
    return beginning.rstrip()


def _clauses(text: str) -> Iterator[Clause]:
    for token in _TOKEN.finditer(text):
        phrase, excluded = token["phrase"], token["excluded"]
        if phrase is not None:
            # Quotes without a word are no phrase.
            has_word = _WORD.search(phrase) is not None
            yield Clause(phrase, is_phrase=has_word, is_excluded=has_word and bool(token["minus"]))
        elif excluded is not None:
            yield Clause(excluded, is_excluded=True)
        else:
            yield Clause(token.group())


def _joined(clauses: Sequence[Clause]) -> list[Clause]:
    """Return the clauses without an OR that lacks a clause before or after it; in linear time."""
    following: list[Clause | None] = []
    for clause in reversed(clauses):
        previous = following[-1] if following else None
        following.append(previous if clause.is_or else clause)
    joined: list[Clause] = []
    # After an OR, `after` is the next clause that is none.
    for clause, after in zip(clauses, reversed(following), strict=True):
        ends_in_words = bool(joined) and not joined[-1].is_or and _has_words(joined[-1:])
        if not clause.is_or or (after and ends_in_words and _has_words([after])):
            joined.append(clause)
    return joined


def _has_words(clauses: Sequence[Clause]) -> bool:
    return any(_WORD.search(word) for clause in clauses for word in clause.words)


def _plain(clauses: Sequence[Clause]) -> str:
    return " ".join(word for clause in clauses for word in clause.words)


def _written(clause: Clause) -> str:
    if clause.is_or:
        return _OR
    text = clause.text.replace('"', " ")
    minus = "-" if clause.is_excluded else ""
    is_misread = text.startswith("-") or text.lower() == "or"
    # Outside quotes it reads every minus before a word as an operator, and "or" as OR.
    return f'{minus}"{text}"' if minus or clause.is_phrase or is_misread else text
