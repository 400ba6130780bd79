"""Finding names of documents in a question. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from retrieval.graph.mentions import Occurrence, occurrences
from retrieval.graph.spans import MAX_WORDS, Word, is_identifier, is_in_capitals, key_of, words_of

_MAX_REPAIRED: Final = 40  #: Letters of a word; longer words must match exactly.
_LETTERS_TO_REPAIR: Final = 4  #: Shorter words must match exactly.
#: A word is a search term if one has the same beginning.
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
    is_marked: bool = True  #: Whether capitals, or its spelling as an identifier, mark it as a name.

    @property
    def key(self) -> str:
        """The normalised name, spelled correctly."""
        return key_of(self.known_as or self.name)


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

    The longest names win, capitalised ones first. In a question with capitals one in lower case has several search
    terms. Of several documents with one name the best score wins, then the most certain name. `stems` are the lexemes
    of the search.
    """
    by_key: dict[str, list[KnownName]] = {}
    for name in known:
        by_key.setdefault(name.key, []).append(name)

    def rank(name: KnownName) -> tuple[float, float, UUID]:
        return -scores.get(name.document_id, 0.0), -name.quality, name.document_id

    has_capitals, capitals = _has_capitals(words_of(question)), _capitals_mean_names(question)
    found = []
    for place in occurrences(question, by_key.keys(), any_case=True):
        said = question[place.start : place.end]
        min_terms = 2 if place.is_plain and has_capitals else int(" " not in place.key)
        if _terms_in(said, stems) < min_terms:
            continue
        name = min(by_key[place.key], key=rank)
        is_marked = _is_marked(question, place, name.text, capitals=capitals)
        found.append(NamedDocument(name.document_id, said, place.start, place.end, is_marked=is_marked))
    return _once(found)


def misspelled_in(
    question: str, ranked: Sequence[tuple[UUID, Sequence[str]]], *, stems: Collection[str]
) -> list[NamedDocument]:
    """Return the documents of a ranking that the question names with at most one wrong letter per word.

    `ranked` are documents, best first, each with its names. The longest names win, then the better documents.
    """
    words = words_of(question)
    has_capitals = _has_capitals(words)
    capitals = _capitals_mean_names(question)
    by_variant = _by_variant(words, capitalised=has_capitals)
    found: list[tuple[int, int, int, UUID, str]] = []
    for rank, (document, names) in enumerate(ranked):
        for name in names:
            forms = key_of(name).split()
            first = _near(words, by_variant, forms)
            if first is not None:
                found.append((len(forms), rank, first, document, name))
    taken: set[int] = set()
    result = []
    for length, _, first, document, name in sorted(found, key=lambda it: (-it[0], it[1], it[2])):
        places = range(first, first + length)
        if taken.isdisjoint(places):
            taken.update(places)
            start, end = words[first].start, words[first + length - 1].end
            place = Occurrence("", start, end, is_plain=not words[first].is_capitalised)
            if length > 1 or _terms_in(question[start:end], stems):
                is_marked = _is_marked(question, place, name, capitals=capitals)
                result.append(NamedDocument(document, question[start:end], start, end, name, is_marked))
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


def _capitals_mean_names(question: str) -> bool:
    """Return whether a word behind the first is capitalised, and most letters are not capitals."""
    return _has_capitals(words_of(question)[1:]) and not is_in_capitals(question)


def _is_marked(question: str, place: Occurrence, name: str, *, capitals: bool) -> bool:
    """Return whether a name in a question is an identifier, or has a capital that shows it to be a name.

    The capital of the first word shows nothing, nor do any without `capitals`, or in a name that consists of them.
    """
    said = question[place.start : place.end]
    if is_identifier(said) or (said[0].islower() and not place.is_plain):
        return True
    if not capitals or place.is_plain or is_in_capitals(name):
        return False
    behind = words_of(question)[0].end - place.start
    return any(word.is_capitalised and word.start >= behind for word in words_of(said))


def _terms_in(said: str, stems: Collection[str]) -> int:
    """Return how many words of a text are search terms; all of them without terms."""
    beginnings = {stem[:_LETTERS_OF_A_STEM] for stem in stems}
    return sum(not stems or word.form[:_LETTERS_OF_A_STEM] in beginnings for word in words_of(said))


def _by_variant(words: Sequence[Word], *, capitalised: bool) -> Mapping[str, Sequence[int]]:
    """Return the places of words, or of `capitalised` ones alone, by variant: a name is compared with few of them."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        if word.is_capitalised or not capitalised:
            for variant in _variants(word.form):
                places.setdefault(variant, []).append(place)
    return places


def _variants(form: str) -> set[str]:
    """Return a word and what is left of it without each of its letters: two words within one letter share one."""
    letters = range(len(form)) if len(form) <= _MAX_REPAIRED else ()
    return {form, *(form[:place] + form[place + 1 :] for place in letters)}


def _near(words: Sequence[Word], places: Mapping[str, Sequence[int]], forms: Sequence[str]) -> int | None:
    if not forms or sum(map(len, forms)) < _LETTERS_TO_REPAIR + 1:
        return None
    for first in sorted({place for variant in _variants(forms[0]) for place in places.get(variant, ())}):
        said = words[first : first + len(forms)]
        if len(said) == len(forms) and all(map(within_one_letter, (word.form for word in said), forms)):
            return first
    return None


def _once(found: Sequence[NamedDocument]) -> list[NamedDocument]:
    seen: set[UUID] = set()
    kept = []
    for name in found:
        if name.document_id not in seen:
            seen.add(name.document_id)
            kept.append(name)
    return kept
