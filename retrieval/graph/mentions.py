"""Mentions in a text: the keys of its capitalised phrases, stored per chunk. Pure."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from retrieval.graph.spans import MAX_WORDS, Word, folded, is_identifier, is_in_capitals, number_of, phrases, words_of

MAX_KEYS: Final = 160  #: Maximum number of keys of one chunk: long lists of names say little about each.
_MAX_PHRASES: Final = 48  #: Maximum number of phrases that are searched in other documents.
_MIN_LETTERS: Final = 2
_SENTENCE_SIGNS: Final = frozenset(".!?:;\n\N{IDEOGRAPHIC FULL STOP}")
_IDENTIFIER_WORDS: Final = 6
_LOOK_AHEAD_CHARACTERS: Final = 32  #: Characters behind a word that can show it to be part of an identifier.

_WORD_SIGN: Final = re.compile(r"\w")
_JOINTS: Final = frozenset({".", "/", "-", "::", "->", ":", "#"})


@dataclass(frozen=True, slots=True)
class Mentions:
    """The keys of a text as numbers: first its `phrases` longest phrases, then their parts."""

    keys: tuple[int, ...] = ()
    phrases: int = 0


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name in a text, in code points, end exclusive."""

    key: str
    start: int
    end: int
    is_plain: bool = False  #: Whether its first word is in lower case, and not part of an identifier.


def mentions_of(text: str) -> Mentions:
    """Return the mentions in a text: capitalised phrases, their parts, and identifiers, in order of appearance.

    A part begins and ends with a capitalised word; one plain word may follow a phrase, as in "Expense policy". A single
    word at the beginning of a sentence, which may be capitalised only for that, counts as a part. Of a text in capitals
    there are only identifiers.
    """
    words = words_of(text)
    whole, parts = dict[str, None](), dict[str, None]()
    for first, last in () if is_in_capitals(text) else phrases(text, words):
        before = text[words[first - 1].end : words[first].start] if first else "\n"
        if last > first or _SENTENCE_SIGNS.isdisjoint(before):
            whole[_key(words, first, last)] = None
        parts.update(dict.fromkeys(_parts(text, words, first, last)))
    whole.update(dict.fromkeys(_key(words, *place) for place in _identifiers(text, words)))
    kept = [key for key in whole if _is_searchable(key)][:_MAX_PHRASES]
    more = [key for key in (*whole, *parts) if _is_searchable(key)]
    return Mentions(tuple(dict.fromkeys(map(number_of, (*kept, *more))))[:MAX_KEYS], len(kept))


def occurrences(text: str, keys: Collection[str], *, any_case: bool = False) -> list[Occurrence]:
    """Return the longest names in a text by key, in order: capitalised ones and identifiers.

    In `any_case` also others, where they do not overlap with those.
    """
    if not keys:
        return []
    forms = folded(text)
    spots = _spots(text, keys) if forms is None else _places(forms, keys)
    found = []
    for start, end, first_end, key in spots:
        is_plain = text[start].islower() and not is_identifier(_around(text, start, first_end))
        if any_case or not is_plain:
            found.append((is_plain, -key.count(" "), start, end, key))
    taken = []
    used: set[int] = set()
    for is_plain, _, start, end, key in sorted(found):
        if used.isdisjoint(range(start, end)):
            used.update(range(start, end))
            taken.append(Occurrence(key, start, end, is_plain))
    return sorted(taken, key=lambda place: place.start)


def _spots(text: str, keys: Collection[str]) -> Iterator[tuple[int, int, int, str]]:
    """Yield where keys are in a text in any case: start, end, the end of the first word, and the key."""
    words = words_of(text)
    max_length = max(key.count(" ") + 1 for key in keys)
    beginnings = {key.partition(" ")[0] for key in keys}
    for first, word in enumerate(words):
        if word.form in beginnings:
            for last in range(first, min(len(words), first + max_length)):
                if (key := _key(words, first, last)) in keys:
                    yield word.start, words[last].end, word.end, key


def _places(forms: str, keys: Collection[str]) -> Iterator[tuple[int, int, int, str]]:
    """Yield the same from a folded text, without looking at its other words."""
    for key in filter(None, keys):
        first, *rest = key.split(" ")
        start = forms.find(first)
        while start >= 0:
            end = first_end = start + len(first)
            is_found = _is_whole(forms, start, end)
            for word in rest if is_found else ():
                following = _WORD_SIGN.search(forms, end)
                begin = following.start() if following else len(forms)
                end = begin + len(word)
                is_found = forms.startswith(word, begin) and _is_whole(forms, begin, end)
                if not is_found:
                    break
            if is_found:
                yield start, end, first_end, key
            start = forms.find(first, first_end)


def _is_whole(text: str, start: int, end: int) -> bool:
    """Return whether a part of a text is neither preceded nor followed by a letter, digit or underscore."""
    return not (_WORD_SIGN.match(text, end) or (start and _WORD_SIGN.match(text, start - 1)))


def phrase_places(text: str) -> Iterator[Occurrence]:
    """Yield the places of a text's longest capitalised phrases and of its identifiers."""
    words = words_of(text)
    for first, last in (*phrases(text, words), *_identifiers(text, words)):
        yield Occurrence(_key(words, first, last), words[first].start, words[last].end)


def _parts(text: str, words: Sequence[Word], first: int, last: int) -> Iterator[str]:
    capitals = [place for place in range(first, last + 1) if words[place].is_capitalised]
    for start in capitals:
        yield from (_key(words, start, end) for end in capitals if end >= start)
    follower = last + 1
    if follower < len(words) and text[words[last].end : words[follower].start] == " ":
        run = next((place for place in range(last, first, -1) if not words[place - 1].is_capitalised), first)
        yield from (_key(words, start, follower) for start in {first, run} if follower - start < MAX_WORDS)


def _identifiers(text: str, words: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """Yield identifiers: words written as code, and words joined by points, slashes and hyphens."""
    place = 0
    while place < len(words):
        last = place
        while last + 1 < len(words) and text[words[last].end : words[last + 1].start] in _JOINTS:
            last += 1
        if last - place < _IDENTIFIER_WORDS and is_identifier(text[words[place].start : words[last].end]):
            yield place, last
        place = last + 1


def _around(text: str, start: int, end: int) -> str:
    max_length = min(len(text), end + _LOOK_AHEAD_CHARACTERS)
    while end < max_length and not text[end].isspace() and text[end] not in ",;()\"'":
        end += 1
    return text[start:end].rstrip(".:")


def _key(words: Sequence[Word], first: int, last: int) -> str:
    return " ".join(word.form for word in words[first : last + 1])


def _is_searchable(key: str) -> bool:
    return len(key) > _MIN_LETTERS and not key.isdigit()
