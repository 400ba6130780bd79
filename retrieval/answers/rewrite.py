"""Rewrite questions to what is searched for, by rules. Pure.

Follow-up questions become standalone questions: words of earlier ones are added. Of a long text its questions are left.
"""

import itertools
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

from retrieval.text.small_talk import is_small_talk

_WORDS: Final = tomllib.loads((files("retrieval.answers") / "rewrite_words.toml").read_text(encoding="utf-8"))
_APOSTROPHE: Final = "\N{RIGHT SINGLE QUOTATION MARK}"
_TOKEN: Final = re.compile(rf"[^\W_]+(?:[-'{_APOSTROPHE}./_][^\W_]+)*")
_CODE: Final = re.compile(r"(?=.*[^\W\d_])(?=.*\d).+")  #: An identifier: "RIME-4107", "0x2F", "K5", "larder.db".
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_DIGITS: Final = re.compile(r"\d+")
_SYNTAX: Final = re.compile(r'"[^"]+"|(?<!\S)-[^\W\d]|\bOR\b')  #: Search syntax; a question with it is not rewritten.
_ENOUGH_WORDS: Final = 6  #: A question with a pronoun and this many content words is searchable without a rewrite.
_ENOUGH_CONTINUED: Final = 3  #: The same for one that only begins like a continuation, as with "and".
_MAX_ELLIPTICAL_WORDS: Final = 1  #: Maximum number of content words of an elliptical question.
_MAX_CARRIED: Final = 10
_MAX_SEARCHED: Final = 500  #: Characters of a query that presets search by default.
_BETWEEN_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_MAX_TITLE_WORDS: Final = 6
_SHARED: Final = 3  #: A title is on topic if the questions contain one of this many of its words.
_STEM_CHARACTERS: Final = 5
_CACHED_TEXTS: Final = 512
_MAX_CHARACTERS: Final = 1_000  #: Only this part of a question decides whether it is standalone.
_LOOK_BACK_CHARACTERS: Final = 64


def _set(name: str) -> frozenset[str]:
    return frozenset(_WORDS[name].split())


OPENERS: Final = tuple(f"{opener} " for opener in _WORDS["openers"])
QUESTION: Final = _set("question")
POINTERS: Final = _set("pointers")
NUMERALS: Final = _set("numerals")
CLAUSE_MARKS: Final = _set("clause_marks")
BE: Final = _set("be")
AUXILIARIES: Final = _set("auxiliaries")
BEFORE_VERBS: Final = _set("before_verbs")
BEFORE_SUBJECTS: Final = _set("before_subjects")
BEFORE_ASKED: Final = _set("before_asked")
FUNCTION: Final = QUESTION | POINTERS | _set("function")


@dataclass(frozen=True, slots=True)
class Said:
    """An earlier question, and the titles of the documents that its answer cites."""

    question: str
    titles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A question and its search text, which are equal for a standalone question."""

    asked: str
    searched: str
    carried: tuple[str, ...] = ()
    is_follow_up: bool = False

    @property
    def is_rewritten(self) -> bool:
        """Whether the search text differs from the question."""
        return self.searched != self.asked


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    is_first: bool  #: Whether it starts a sentence, so that its capital does not mark a name.

    @property
    def folded(self) -> str:
        return self.text.casefold().replace(_APOSTROPHE, "'")

    @property
    def is_name(self) -> bool:
        """Whether it names something: a code, a number, or with a capital inside a sentence or inside the word."""
        if self.folded in FUNCTION:
            return False
        is_capital = self.text[0].isupper() and not self.is_first
        return self.is_code or self.text.isdecimal() or is_capital or any(map(str.isupper, self.text[1:]))

    @property
    def is_code(self) -> bool:
        return _CODE.fullmatch(self.text) is not None

    @property
    def is_content(self) -> bool:
        return self.is_name or self.folded.removesuffix("'s") not in FUNCTION


@dataclass(frozen=True, slots=True)
class _Context:
    last: tuple[_Word, ...]  #: The content words of the last question, and of the standalone question before it.
    topic: tuple[_Word, ...]
    titles: tuple[str, ...]


def stand_alone(question: str, before: Sequence[Said]) -> Rewriting:
    """Return a question with a search text that does not need the earlier questions (oldest first).

    The added words come from the last question, then from the last standalone question, then from the titles cited
    last. Words that were only added to the last question are not added again, so that they do not accumulate. A
    standalone question is not changed, unless it is a longer text than retrieval reads: then its questions are left.
    """
    text = _questions_of(question) if len(question) > _MAX_SEARCHED else question
    context: _Context | None = None
    for said in before:
        own = _content_words(said.question)
        titles = said.titles or (context.titles if context else ())
        if context is None or not depends(said.question):
            context = _Context(own, own, titles)
        else:
            kept = _not_replaced(context.topic, own)
            context = _Context(own, (*own, *kept) if _replaces(said.question) else context.topic, titles)
    is_follow_up = context is not None and depends(text)
    carried = _carried(text, context) if context is not None and is_follow_up else ()
    searched = f"{text.rstrip()} ({' '.join(carried)})" if carried else text
    return Rewriting(question, searched, carried, is_follow_up)


def _questions_of(text: str) -> str:
    """Return the last questions of a text that can be searched, each with the sentence that it depends on.

    Returns the text unchanged if it has none.
    """
    sentences = [it.strip() for it in _BETWEEN_SENTENCES.split(text)]
    kept: list[str] = []
    questions = [it for it in itertools.pairwise(["", *sentences]) if it[1].endswith("?")]
    for before, question in reversed(questions):
        needed = [before, question] if before and depends(question) else [question]
        if len(" ".join([*needed, *kept])) > _MAX_SEARCHED:
            break
        kept = [*needed, *kept]
    return " ".join(kept) or text


def depends(question: str) -> bool:
    """Return whether a question can only be understood with the earlier questions."""
    if _SYNTAX.search(question) or is_small_talk(question):
        return False
    found = _words(question)
    own = _content_words(question)
    if _has_open_pronoun(found):
        return len(own) < _ENOUGH_WORDS
    if _continues(found):
        return len(own) < _ENOUGH_CONTINUED
    # Too little content: "Since when?", "Who signs?", "What is the deadline?". A verb with an object ("drain the
    # queue") is enough, and so is a subject ("what does ammonia do").
    is_question = question.rstrip().endswith("?") or (bool(found) and found[0].folded in QUESTION)
    has_subject = any(
        after.is_content and before.folded in BEFORE_SUBJECTS for before, after in itertools.pairwise(found)
    )
    is_elliptical = is_question and len(own) <= _MAX_ELLIPTICAL_WORDS and not has_subject
    return is_elliptical and not any(word.is_name for word in own)


def _has_open_pronoun(found: Sequence[_Word]) -> bool:
    return any(
        word.folded in POINTERS and not _is_filler(found, place) and not _has_antecedent(found, place)
        for place, word in enumerate(found)
    )


def _continues(found: Sequence[_Word]) -> bool:
    return " ".join((*(word.folded for word in found), "")).startswith(OPENERS)


def _is_filler(found: Sequence[_Word], place: int) -> bool:
    """Return whether a pronoun is a dummy: "does *it* take to", "is *there* a", "we noticed *that* a"."""
    word, after = found[place].folded, [it.folded for it in found[place + 1 :]]
    before = found[place - 1] if place else None
    if word in NUMERALS and place + 1 < len(found):
        return found[place + 1].is_content
    if word == "that" and before is not None and after:
        return before.is_content
    if word == "there":
        return bool({*after[:1], before.folded if before else ""} & BE)
    return word == "it" and bool(CLAUSE_MARKS & {*after[1:]})


def _has_antecedent(found: Sequence[_Word], place: int) -> bool:
    """Return whether a noun before a pronoun can be its antecedent.

    A verb cannot: "do we *pay* for it"; nor the noun of the question word: "what *colour* do they wear".
    """
    no_noun = BEFORE_VERBS
    if place and found[place - 1].folded in AUXILIARIES:
        no_noun |= BEFORE_ASKED
    return any(
        word.is_name or (at > 0 and word.is_content and found[at - 1].folded not in no_noun)
        for at, word in enumerate(found[:place])
    )


def _carried(question: str, context: _Context) -> tuple[str, ...]:
    own, earlier = _content_words(question), (*context.last, *context.topic)
    replaces = _replaces(question)
    wanted = _not_replaced(earlier, own) if replaces else earlier
    carried = list(_new((it.text for it in wanted), own))[:_MAX_CARRIED]
    if not replaces and context.titles:
        title = [it.text for it in _content_words(context.titles[0]) if not it.text.isdecimal()]
        if _SHARED * len(_stems(title) & _stems(it.text for it in earlier)) >= len(title):
            carried += list(_new(title, [*own, *_words(" ".join(carried))]))[:_MAX_TITLE_WORDS]
    return tuple(carried)


def _replaces(question: str) -> bool:
    """Return whether a follow-up replaces a part of the earlier question: "and in 2025?", not "and who signs it?"."""
    found = _words(question)
    return _continues(found) and any(word.is_content for word in found) and not _has_open_pronoun(found)


def _not_replaced(earlier: Iterable[_Word], own: Sequence[_Word]) -> Iterator[_Word]:
    kinds = {_kind(it) for it in own if it.is_name}
    return (word for word in earlier if not word.is_name or _kind(word) not in kinds)


def _kind(word: _Word) -> str:
    if _YEAR.fullmatch(word.text):
        return "year"
    return _DIGITS.sub("0", word.folded) if word.is_code or word.text.isdecimal() else "name"


def _new(candidates: Iterable[str], known: Iterable[_Word]) -> Iterator[str]:
    stems = _stems(word.text for word in known)
    for candidate in candidates:
        if (stem := _stem(candidate)) not in stems:
            stems.add(stem)
            yield candidate


def _stems(texts: Iterable[str]) -> set[str]:
    return {_stem(text) for text in texts}


def _stem(word: str) -> str:
    """Return the first characters of a word, which ignores endings ("days", "day's"), or a complete code."""
    folded = word.casefold()
    return folded if _CODE.fullmatch(folded) else folded[:_STEM_CHARACTERS]


def _content_words(text: str) -> tuple[_Word, ...]:
    return tuple(word for word in _words(text) if word.is_content)


def _words(text: str) -> tuple[_Word, ...]:
    return _words_of(text[:_MAX_CHARACTERS])


@lru_cache(maxsize=_CACHED_TEXTS)
def _words_of(text: str) -> tuple[_Word, ...]:
    found = []
    for match in _TOKEN.finditer(text):
        before = text[max(0, match.start() - _LOOK_BACK_CHARACTERS) : match.start()].rstrip()
        found.append(_Word(match.group(), (before or ".")[-1] in ".!?:"))
    return tuple(found)
