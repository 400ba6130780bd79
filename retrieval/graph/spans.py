"""Words, capitalised phrases and identifiers of a text, and normalised names. Pure."""

import hashlib
import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

#: Scripts that write without spaces count each character as a word.
_SPACELESS: Final = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_SPACELESS}]|[^\W{_SPACELESS}]+")
_RUN: Final = re.compile(r"\w+")
_ACCENTED: Final = re.compile(r"(?<!\w)[a-zA-Z0-9_]*+[^\W\x00-\x7f]\w*")
_ONE_CHARACTER: Final = re.compile(f"[{_SPACELESS}]")
#: Text between two words of one phrase: spaces, hyphens, apostrophes, the point of an initial, an ampersand.
_INSIDE: Final = re.compile(r"[ \t]*(?:['\u2019-][ \t]*|&[ \t]*)?|\.?[ \t]*")
#: What joins the words of an identifier: a path, a dotted name, an error's number.
_JOINT: Final = re.compile(r"[-./:#]|::|->")
_HUMP: Final = re.compile(r"[a-z\d][A-Z]|[A-Z]{2}[a-z]|_|[a-zA-Z]\d|\d[a-zA-Z]")
_SENTENCE_END: Final = re.compile(r"[.!?\u3002\uff01\uff1f][\"'\u201d\u2019)\]]*\s+(?=[^a-z\s])|\n+")
#: Lower-case words up to this length may be inside a name: of, the, de, la, von, and, bin.
_LETTERS_BETWEEN: Final = 3
_CACHED_TEXTS: Final = 64  #: A search reads the words of its few seeds three times, and ingestion those of its chunk.
_AROUND_CHARACTERS: Final = 500  #: Maximum length of a sentence before and behind a place.
_INITIAL_LETTERS: Final = 2
_MAX_GAP: Final = 3
MAX_WORDS: Final = 10


class Word(NamedTuple):
    """A word of a text: its normalised form, and its position."""

    form: str
    start: int
    end: int
    is_capitalised: bool  #: Whether it starts with a capital or a digit, or its script has no capitals.


@lru_cache(maxsize=_CACHED_TEXTS)
def words_of(text: str) -> tuple[Word, ...]:
    """Return the words of a text in order; normalised without case, accents and Unicode form."""
    if (forms := folded(text)) is not None:
        spans, new = (match.span() for match in _RUN.finditer(text)), tuple.__new__
        return tuple([new(Word, (forms[start:end], start, end, not text[start].islower())) for start, end in spans])
    found = []
    for match in _WORD.finditer(text):
        written = match[0]
        if form := written.lower() if written.isascii() else _form(written):
            found.append(Word(form, match.start(), match.end(), not written[0].islower()))
    return tuple(found)


def folded(text: str) -> str | None:
    """Return a text with the form of each word at the word's place.

    None where a form has another length than its word, and for scripts that write without spaces.
    """
    if text.isascii():
        return text.lower()
    pieces: list[str] = []
    end = 0
    for match in _ACCENTED.finditer(text):
        form = _form(match[0])
        if len(form) != len(match[0]) or _ONE_CHARACTER.search(form):
            return None
        pieces += text[end : match.start()].lower(), form
        end = match.end()
    pieces.append(text[end:].lower())
    found = "".join(pieces)
    return found if len(found) == len(text) else None


def key_of(name: str) -> str:
    """Return a normalised name: its words without case, accents and punctuation."""
    return " ".join(word.form for word in words_of(name))


def number_of(key: str) -> int:
    """Return the stored number of a key: 64 bits of its hash, signed."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), signed=True)


def is_in_capitals(text: str) -> bool:
    """Return whether most letters of a text are capitals, so that a capital marks no name."""
    return 2 * sum(map(str.isupper, text)) > sum(map(str.isalpha, text))


def sentence_around(text: str, start: int, end: int) -> str:
    """Return the sentence around a place in a text, without line breaks; a long one is cut."""
    stops, ends = _sentence_ends(text)
    before, after = bisect_right(ends, start) - 1, bisect_left(stops, end)
    first = max(ends[before] if before >= 0 else 0, start - _AROUND_CHARACTERS)
    last = min(ends[after] if after < len(ends) else len(text), end + _AROUND_CHARACTERS)
    return " ".join(text[first:last].split())


@lru_cache(maxsize=_CACHED_TEXTS)
def _sentence_ends(text: str) -> tuple[Sequence[int], Sequence[int]]:
    stops, ends = array("I"), array("I")
    for match in _SENTENCE_END.finditer(text):
        point = match.start()
        before = text[max(0, point - 3) : point].split()[-1:] if text[point] == "." else []
        # The point of an initial or a short title does not end a sentence: "J. Smith", "St. Maurice".
        if not (before and len(before[0]) <= _INITIAL_LETTERS and before[0][:1].isupper()):
            stops.append(match.start())
            ends.append(match.end())
    return stops, ends


def phrases(text: str, words: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """Yield the longest capitalised phrases, first and last word, with lower-case words of three letters inside."""
    place = 0
    while place < len(words):
        if not words[place].is_capitalised:
            place += 1
            continue
        last = place
        for ahead in range(place + 1, min(len(words), place + MAX_WORDS)):
            between = words[ahead - 1].end, words[ahead].start
            if between[1] - between[0] > _MAX_GAP or not _INSIDE.fullmatch(text, *between):
                break
            if words[ahead].is_capitalised:
                last = ahead
            elif ahead - last > 2 or words[ahead].end - words[ahead].start > _LETTERS_BETWEEN:  # noqa: PLR2004 -- "of the"
                break
        yield place, last
        place = last + 1


def is_identifier(text: str) -> bool:
    """Return whether a text is written as code is: scope_for, HttpRequest, Q-4711, retrieval/graph/spans.py."""
    return " " not in text and (_HUMP.search(text) is not None or (_JOINT.search(text) is not None and len(text) > 3))  # noqa: PLR2004


def _form(word: str) -> str:
    split = unicodedata.normalize("NFKD", word.casefold())
    return unicodedata.normalize("NFC", "".join(sign for sign in split if sign.isalnum() or sign == "_"))
