"""Making a follow-up question stand alone, without a language model: what it leaves out is carried over. Pure."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from retrieval.answers import followup_words as words

_APOSTROPHE: Final = "\N{RIGHT SINGLE QUOTATION MARK}"
_TOKEN: Final = re.compile(rf"[^\W_]+(?:[-'{_APOSTROPHE}./_][^\W_]+)*")
#: "RIME-4107", "0x2F", "K5", "larder.db": the name of one thing.
_CODE: Final = re.compile(r"(?=.*[^\W\d_])(?=.*\d).+")
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_DIGITS: Final = re.compile(r"\d+")
#: What search syntax is made of; a question with it means what it says.
_SYNTAX: Final = re.compile(r'"[^"]+"|(?<!\S)-[^\W\d]|\bOR\b')
#: A question with a pronoun and so many words of its own can be searched for as it is.
_ENOUGH_WORDS: Final = 6
#: Words of its own up to which a question counts as elliptical.
_FEW_WORDS: Final = 1
_MAX_CARRIED: Final = 10
_MAX_OF_TITLE: Final = 6
#: One of so many words of a title must stand in the question for it to be about the same.
_SHARED: Final = 3
_SAME_BEGINNING: Final = 5
_KEPT_TEXTS: Final = 512
#: What follows in a longer question makes no difference to whether it stands alone.
_READ_CHARACTERS: Final = 1_000
_LOOK_BACK_CHARACTERS: Final = 64


@dataclass(frozen=True, slots=True)
class Said:
    """What was asked before, and the titles of the documents that its answer cites."""

    question: str
    titles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A question, and what is searched for in its place; the same text when the question stands alone."""

    asked: str
    searched: str
    #: What was added, in order.
    carried: tuple[str, ...] = ()
    #: Whether it can only be understood from what was said before.
    is_follow_up: bool = False

    @property
    def is_rewritten(self) -> bool:
        """Whether anything but the question is searched for."""
        return self.searched != self.asked


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    #: Whether the text before it ends a sentence, so that its capital says nothing.
    is_first: bool

    @property
    def folded(self) -> str:
        return self.text.casefold().replace(_APOSTROPHE, "'")

    @property
    def is_name(self) -> bool:
        """Whether it names one thing: a code, a number, or a capital inside a sentence."""
        if self.folded in words.FUNCTION:
            return False
        return self.is_code or self.text.isdecimal() or (self.text[0].isupper() and not self.is_first) or self._is_odd

    @property
    def is_code(self) -> bool:
        return _CODE.fullmatch(self.text) is not None

    @property
    def _is_odd(self) -> bool:
        return any(letter.isupper() for letter in self.text[1:])

    @property
    def says_something(self) -> bool:
        return self.is_name or self.folded.removesuffix("'s") not in words.FUNCTION


@dataclass(frozen=True, slots=True)
class _Before:
    """What a question can follow up on."""

    #: The words of the last question that say something, and those of the one that it rests on.
    last: tuple[_Word, ...]
    topic: tuple[_Word, ...]
    titles: tuple[str, ...]


def stand_alone(question: str, before: Sequence[Said]) -> Rewriting:
    """Return a question so that it can be searched for without what was said before, oldest first.

    What is carried over comes from the last question, then from the one that stood alone before it, then from the
    titles that were cited last. Words of a title, or of a follow-up, that were only carried into the last question are
    not carried on, so that nothing piles up. A question that stands alone comes back as it is.
    """
    known: _Before | None = None
    for said in before:
        known = _after(said, known)
    return _rewritten(question, known)


def _after(said: Said, known: _Before | None) -> _Before:
    """Return what the question after this one can follow up on."""
    own = _own(said.question)
    if known is None or not depends(said.question):
        return _Before(own, own, said.titles or (known.titles if known else ()))
    replaces = _replaces(said.question)
    topic = (*own, *_kept(known.topic, own)) if replaces else known.topic
    return _Before(own, topic, said.titles or known.titles)


def _rewritten(question: str, known: _Before | None) -> Rewriting:
    is_follow_up = known is not None and depends(question)
    carried = _carried(question, known) if known is not None and is_follow_up else ()
    searched = f"{question.rstrip()} ({' '.join(carried)})" if carried else question
    return Rewriting(question, searched, carried, is_follow_up)


def depends(question: str) -> bool:
    """Return whether a question can only be understood from what was said before it."""
    if _SYNTAX.search(question):
        return False
    found = _words(question)
    own = _own(question)
    if _goes_on(found) or _points_back(found):
        return len(own) < _ENOUGH_WORDS
    return not any(word.is_name for word in own) and _is_elliptical(question, found, own)


def _goes_on(found: Sequence[_Word]) -> bool:
    """Return whether a question begins as one that goes on from another: "and in 2025?", "what about Vessing?"."""
    return " ".join((*(word.folded for word in found), "")).startswith(words.OPENERS)


def _points_back(found: Sequence[_Word]) -> bool:
    """Return whether a pronoun has nothing in its own question to point to."""
    return any(
        word.folded in words.POINTERS and not _is_filler(found, place) and not _has_antecedent(found, place)
        for place, word in enumerate(found)
    )


def _is_filler(found: Sequence[_Word], place: int) -> bool:
    """Return whether a pronoun only fills a place: "does *it* take to", "is *there* a", "we noticed *that* a"."""
    word, after = found[place].folded, [it.folded for it in found[place + 1 :]]
    before = found[place - 1] if place else None
    if word in words.NUMERALS and place + 1 < len(found):
        return found[place + 1].says_something
    if word == "that" and before is not None and after:
        return before.says_something
    if word == "there":
        return bool({*after[:1], before.folded if before else ""} & words.BE)
    return word == "it" and bool(words.CLAUSE_MARKS & {*after[1:]})


def _has_antecedent(found: Sequence[_Word], place: int) -> bool:
    """Return whether something is named that a pronoun after it can stand for.

    A verb cannot: "do we *pay* for it"; nor what is asked for: "what *colour* do they wear".
    """
    no_noun = words.BEFORE_VERBS
    if place and found[place - 1].folded in words.AUXILIARIES:
        no_noun |= words.BEFORE_ASKED
    return any(
        word.is_name or (at > 0 and word.says_something and found[at - 1].folded not in no_noun)
        for at, word in enumerate(found[:place])
    )


def _is_elliptical(question: str, found: Sequence[_Word], own: Sequence[_Word]) -> bool:
    """Return whether hardly anything is said: "Since when?", "Who signs?", "What is the deadline?".

    A question says enough with a verb and what it is about ("drain the queue"), also when that is all that it names
    ("what does ammonia do").
    """
    asks = question.rstrip().endswith("?") or (bool(found) and found[0].folded in words.QUESTION)
    names = any(
        after.says_something and before.folded in words.BEFORE_SUBJECTS for before, after in itertools.pairwise(found)
    )
    return asks and len(own) <= _FEW_WORDS and not names


def _carried(question: str, known: _Before) -> tuple[str, ...]:
    """Return the words to add: those of what was asked, then those of a title that is about the same."""
    own, asked = _own(question), (*known.last, *known.topic)
    replaces = _replaces(question)
    carried = list(_new((it.text for it in (_kept(asked, own) if replaces else asked)), own))[:_MAX_CARRIED]
    if not replaces and known.titles:
        title = [it.text for it in _own(known.titles[0]) if not it.text.isdecimal()]
        if _SHARED * len(_stems(title) & _stems(it.text for it in asked)) >= len(title):
            carried += list(_new(title, [*own, *_words(" ".join(carried))]))[:_MAX_OF_TITLE]
    return tuple(carried)


def _replaces(question: str) -> bool:
    """Return whether a follow-up puts something else in the place of what was asked about: "and in 2025?"."""
    return _goes_on(_words(question)) and bool(_own(question))


def _kept(asked: Iterable[_Word], own: Sequence[_Word]) -> Iterator[_Word]:
    """Yield the words in whose place a follow-up names nothing."""
    return (word for word in asked if not _is_replaced(word, own))


def _is_replaced(word: _Word, own: Iterable[_Word]) -> bool:
    """Return whether the follow-up names another thing of the same kind in a word's place."""
    return word.is_name and any(it.is_name and _kind(it) == _kind(word) for it in own)


def _kind(word: _Word) -> str:
    """Return what kind of thing a name names: a year, a code of this shape, or a name."""
    if _YEAR.fullmatch(word.text):
        return "year"
    return _DIGITS.sub("0", word.folded) if word.is_code or word.text.isdecimal() else "name"


def _new(candidates: Iterable[str], known: Iterable[_Word]) -> Iterator[str]:
    """Yield each word once that is not known, in whatever form."""
    stems = _stems(word.text for word in known)
    for candidate in candidates:
        if (stem := _stem(candidate)) not in stems:
            stems.add(stem)
            yield candidate


def _stems(texts: Iterable[str]) -> set[str]:
    return {_stem(text) for text in texts}


def _stem(word: str) -> str:
    """Return how a word begins, whatever its ending: "days", "day's"; a code is taken whole."""
    folded = word.casefold()
    return folded if _CODE.fullmatch(folded) else folded[:_SAME_BEGINNING]


def _own(text: str) -> tuple[_Word, ...]:
    """Return the words of a text that say something."""
    return tuple(word for word in _words(text) if word.says_something)


def _words(text: str) -> tuple[_Word, ...]:
    """Return the words that a text begins with, in order."""
    return _words_of(text[:_READ_CHARACTERS])


@lru_cache(maxsize=_KEPT_TEXTS)
def _words_of(text: str) -> tuple[_Word, ...]:
    return tuple(
        _Word(match.group(), (_before(text, match.start()) or ".")[-1] in ".!?:") for match in _TOKEN.finditer(text)
    )


def _before(text: str, place: int) -> str:
    """Return the last characters before a place, without the blanks at their end."""
    return text[max(0, place - _LOOK_BACK_CHARACTERS) : place].rstrip()
