"""The names of a document. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from retrieval.graph.spans import MAX_WORDS, Word, is_identifier, is_in_capitals, phrases, words_of

_BRACKETED: Final = re.compile(r"(?<!\s)\s*+[(\[][^()\[\]]*+[)\]]\s*+$")
_NAME_WORDS: Final = 8
_CAPITALISED_SHARE: Final = 0.8
#: Words that begin a title, but no name of a person, whose first and last words are a name too.
_NO_FIRST_NAMES: Final = frozenset(
    {"a", "about", "an", "at", "by", "for", "from", "how", "in", "notes", "of", "on", "some", "the", "to", "towards"}
    | {"two", "using", "what", "when", "why", "with"}
)
_CONJUNCTIONS: Final = frozenset({"and", "or", "und", "oder", "et", "ou", "y", "o"})
_LITTLE_WORD: Final = 3  #: Words up to this length do not decide whether a title is a name: of, the, von.
MAX_CHARACTERS: Final = 120  #: Characters of a name: longer ones are sentences.
_MAX_NAMES: Final = 40  #: Maximum number of names of one document; a page with more headings is a list.


class NameKind(StrEnum):
    """The origin of a name."""

    TITLE = "title"
    BARE = "bare"
    SHORT = "short"
    LEAD = "lead"
    ENDS = "ends"
    ALIAS = "alias"
    HEADING = "heading"
    IDENTIFIER = "identifier"
    ADDRESS = "address"  #: An address for links, which is no name in a text.


#: Certainty that a name of a kind means its document, 0 to 1.
QUALITY: Final = {
    NameKind.TITLE: 1.0,
    NameKind.ADDRESS: 1.0,
    NameKind.BARE: 0.9,
    NameKind.ALIAS: 0.9,
    NameKind.LEAD: 0.8,
    NameKind.IDENTIFIER: 0.8,
    NameKind.SHORT: 0.6,
    NameKind.ENDS: 0.6,
    NameKind.HEADING: 0.5,
}


@dataclass(frozen=True, slots=True)
class Name:
    """A name of a document."""

    key: str
    text: str
    kind: NameKind

    @property
    def quality(self) -> float:
        """Certainty that it means its document, 0 to 1."""
        return QUALITY[self.kind]


def names_of(
    title: str,
    *,
    lead: str = "",
    aliases: Iterable[str] = (),
    headings: Iterable[str] = (),
    identifiers: Iterable[str] = (),
) -> tuple[Name, ...]:
    """Return the most certain names by key; `lead` begins the text. Only a title that is a name has short forms."""
    found: dict[str, Name] = {}
    for kind, text in _candidates(title, lead, aliases, headings, identifiers):
        words = words_of(text)
        key = " ".join(word.form for word in words)
        if _can_name(text, words) and (key not in found or found[key].quality < QUALITY[kind]):
            found[key] = Name(key, " ".join(text.split()), kind)
    ordered = sorted(found.values(), key=lambda name: (-name.quality, name.key))
    return tuple(ordered[:_MAX_NAMES])


def looks_like_a_name(title: str) -> bool:
    """Return whether a title is a name: few words, at most one comma, nearly all of its content words capitalised.

    A title in capitals may be anything.
    """
    words = words_of(title)
    content = [word for word in words if word.end - word.start > _LITTLE_WORD or word.is_capitalised]
    if not content or len(words) > _NAME_WORDS or title.count(",") > 1 or is_in_capitals(title):
        return False
    return sum(word.is_capitalised for word in content) >= _CAPITALISED_SHARE * len(content)


def _candidates(
    title: str, lead: str, aliases: Iterable[str], headings: Iterable[str], identifiers: Iterable[str]
) -> Iterator[tuple[NameKind, str]]:
    bare = _BRACKETED.sub("", title)
    yield NameKind.TITLE, title
    yield NameKind.BARE, bare
    if looks_like_a_name(bare):
        before, comma, behind = bare.partition(",")
        if comma and not _is_list(behind):
            yield NameKind.SHORT, before
        words = words_of(before)
        capitals = [word for word in words if word.is_capitalised]
        is_long = len(words) > 2  # noqa: PLR2004 -- first, middle, last
        if is_long and words[0].form not in _NO_FIRST_NAMES and words[0].is_capitalised and words[-1].is_capitalised:
            yield NameKind.ENDS, f"{before[words[0].start : words[0].end]} {before[words[-1].start : words[-1].end]}"
        # The name of two words or more that the text begins with.
        lead_words = words_of(lead)
        first, last = next(phrases(lead, lead_words), (1, 0))
        if first == 0 < last and {word.form for word in lead_words[: last + 1]} & {word.form for word in capitals}:
            yield NameKind.LEAD, lead[lead_words[0].start : lead_words[last].end]
    yield from ((NameKind.ALIAS, alias) for alias in aliases)
    # A heading can name its document if it is code, or several words that look like a name.
    for heading in headings:
        if is_identifier(heading) or (len(words_of(heading)) > 1 and looks_like_a_name(heading)):
            yield NameKind.HEADING, heading
    yield from ((NameKind.IDENTIFIER, text) for text in identifiers if is_identifier(text))


def _is_list(behind: str) -> bool:
    """Return whether what is behind a comma goes on with a list: "Documentation and Tables", not "Duke of A and B"."""
    first_small = next((word.form for word in words_of(behind) if not word.is_capitalised), "")
    return first_small in _CONJUNCTIONS


def _can_name(text: str, words: Sequence[Word]) -> bool:
    letters = sum(word.end - word.start for word in words)
    if not words or len(words) > MAX_WORDS or len(text) > MAX_CHARACTERS:
        return False
    return (letters > 1 and any(not word.form.isdigit() for word in words)) or letters > 3  # noqa: PLR2004 -- "1984"
