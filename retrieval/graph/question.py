"""Finding names of documents in a question. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from retrieval.graph.mentions import Occurrence, occurrences
from retrieval.graph.spans import MAX_WORDS, Word, key_of, words_of

_LETTERS_TO_REPAIR: Final = 4  #: Shorter words must match exactly.
#: A capitalised first word is a name only if it is also a search term with the same beginning.
_LETTERS_OF_A_STEM: Final = 3


@dataclass(frozen=True, slots=True)
class KnownName:
    """A name of a document in scope."""

    document_id: UUID
    text: str
    quality: float

    @property
    def key(self) -> str:
        """The normalised name."""
        return key_of(self.text)


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A document that a question names, and where."""

    document_id: UUID
    name: str
    start: int
    end: int
    known_as: str = ""  #: The correct name if the question misspells it; else empty.

    @property
    def is_repaired(self) -> bool:
        """Whether the question misspells the name."""
        return bool(self.known_as)


def question_keys(question: str) -> list[str]:
    """Return every sequence of words of a question that may be a name, in order."""
    words = words_of(question)
    runs = (
        " ".join(word.form for word in words[first:last])
        for first in range(len(words))
        for last in range(first + 1, min(len(words), first + MAX_WORDS) + 1)
    )
    return list(dict.fromkeys(runs))


def named_in(
    question: str, known: Sequence[KnownName], *, scores: Mapping[UUID, float], stems: Collection[str]
) -> list[NamedDocument]:
    """Return the documents that a question names, in the question's order.

    The longest names win. They must be capitalised, unless nothing in the question is. Of several documents with one
    name the best score wins, then the most certain name. `stems` are the lexemes of the search.
    """
    by_key: dict[str, list[KnownName]] = {}
    for name in known:
        by_key.setdefault(name.key, []).append(name)

    def rank(name: KnownName) -> tuple[float, float, UUID]:
        return -scores.get(name.document_id, 0.0), -name.quality, name.document_id

    found = [
        NamedDocument(
            min(by_key[place.key], key=rank).document_id, question[place.start : place.end], place.start, place.end
        )
        for place in occurrences(question, by_key.keys(), any_case=not _has_capitals(words_of(question)))
        if not _is_only_a_beginning(place, question, stems)
    ]
    return _once(found)


def misspelled_in(
    question: str, ranked: Sequence[tuple[UUID, Sequence[str]]], *, stems: Collection[str]
) -> list[NamedDocument]:
    """Return the documents of a ranking that the question names with at most one wrong letter per word.

    `ranked` are documents, best first, each with its names. The longest names win, then the better documents.
    """
    words = words_of(question)
    has_capitals = _has_capitals(words)
    found: list[tuple[int, int, int, UUID, str]] = []
    for rank, (document, names) in enumerate(ranked):
        for name in names:
            forms = key_of(name).split()
            for first in _near(words, forms, has_capitals=has_capitals):
                found.append((len(forms), rank, first, document, name))  # noqa: PERF401 -- three loops deep
    taken: set[int] = set()
    result = []
    for length, _, first, document, name in sorted(found, key=lambda it: (-it[0], it[1], it[2])):
        places = range(first, first + length)
        if taken.isdisjoint(places):
            taken.update(places)
            start, end = words[first].start, words[first + length - 1].end
            place = Occurrence("", start, end)
            if length > 1 or not _is_only_a_beginning(place, question, stems):
                result.append(NamedDocument(document, question[start:end], start, end, known_as=name))
    return _once(sorted(result, key=lambda it: it.start))


def without(question: str, named: Iterable[NamedDocument]) -> str:
    """Return a question without the names in it."""
    for name in sorted(named, key=lambda it: -it.start):
        question = question[: name.start] + " " + question[name.end :]
    return " ".join(question.split())


def within_one_letter(one: str, other: str) -> bool:
    """Return whether two words differ by at most one letter: wrong, missing, added, or swapped with its neighbour."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    if len(long) < _LETTERS_TO_REPAIR or len(long) - len(short) > 1:
        return False
    if len(short) < len(long):
        return any(short == long[:place] + long[place + 1 :] for place in range(len(long)))
    different = [place for place in range(len(one)) if one[place] != other[place]]
    if len(different) == 1:
        return True
    if len(different) != 2:  # noqa: PLR2004 -- a pair
        return False
    first, second = different
    return second == first + 1 and one[first] == other[second] and one[second] == other[first]


def _has_capitals(words: Sequence[Word]) -> bool:
    return any(word.is_capitalised and not word.form.isdigit() for word in words)


def _is_only_a_beginning(place: Occurrence, question: str, stems: Collection[str]) -> bool:
    """Return whether an occurrence is a single word that is no search term."""
    form = key_of(question[place.start : place.end])
    if " " in form or not stems:
        return False
    return not any(form[:_LETTERS_OF_A_STEM] == stem[:_LETTERS_OF_A_STEM] for stem in stems)


def _near(words: Sequence[Word], forms: Sequence[str], *, has_capitals: bool) -> Iterator[int]:
    if not forms or sum(map(len, forms)) < _LETTERS_TO_REPAIR + 1:
        return
    for first in range(len(words) - len(forms) + 1):
        if has_capitals and not words[first].is_capitalised:
            continue
        if all(within_one_letter(words[first + place].form, form) for place, form in enumerate(forms)):
            yield first
            return


def _once(found: Sequence[NamedDocument]) -> list[NamedDocument]:
    seen: set[UUID] = set()
    kept = []
    for name in found:
        if name.document_id not in seen:
            seen.add(name.document_id)
            kept.append(name)
    return kept
