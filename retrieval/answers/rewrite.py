"""Rewrite questions to what is searched for, by rules. Pure.

Follow-up questions become standalone questions: words of earlier ones are added. Of a long text its questions are left.
"""

import itertools
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, Self

from retrieval.text.language import question_language
from retrieval.text.small_talk import after_small_talk, is_small_talk

_WORDS: Final = tomllib.loads((files("retrieval.answers") / "rewrite_words.toml").read_text(encoding="utf-8"))
_APOSTROPHE: Final = "\N{RIGHT SINGLE QUOTATION MARK}"
_TOKEN: Final = re.compile(rf"\d+(?:[.,]\d+)+(?![\w-])|[^\W_]+(?:[-'{_APOSTROPHE}./_][^\W_]+)*")
_CODE: Final = re.compile(r"(?=.*[^\W\d_])(?=.*\d).+")  #: An identifier: "RIME-4107", "0x2F", "K5", "larder.db".
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_SEPARATOR: Final = re.compile(r"[.,]")
_DIGITS: Final = re.compile(r"\d+")
_SYNTAX: Final = re.compile(r'"[^"]+"|(?<!\S)-[^\W\d]|\bOR\b')  #: Search syntax; a question with it is not rewritten.
_ENOUGH_WORDS: Final = 6  #: A question with a pronoun and this many content words is searchable without a rewrite.
_ENOUGH_CONTINUED: Final = 3  #: The same for one that only begins like a continuation, as with "and".
_ENOUGH_DEFINITE: Final = 4  #: The same for one about "the code" after an answer that has one.
_MAX_ELLIPTICAL_WORDS: Final = 1  #: Maximum number of content words of an elliptical question.
_MIN_CODE: Final = 3  #: A number with so many digits names something.
_MAX_CARRIED: Final = 10
_MAX_SEARCHED: Final = 500  #: Characters of a query that presets search by default.
_BETWEEN_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_MAX_TITLE_WORDS: Final = 6
_SHARED: Final = 3  #: A title is on topic if the questions contain one of this many of its words.
_STEM_CHARACTERS: Final = 5
_CACHED_TEXTS: Final = 512
_MAX_CHARACTERS: Final = 1_000  #: Only this part of a question decides whether it is standalone.
_LOOK_BACK_CHARACTERS: Final = 64
_DUMMY_SUBJECTS: Final = frozenset({"it", "es", "il"})


_NONE: Final = frozenset[str]()


@dataclass(frozen=True, slots=True, eq=False)
class _Language:
    """The words of a language by their role in a question; `rewrite_words.toml` says what they are."""

    openers: tuple[str, ...]
    has_capital_nouns: bool  #: Whether any noun has a capital, as in German, so that it marks no name.
    question: frozenset[str]
    pointers: frozenset[str]
    function: frozenset[str]
    numerals: frozenset[str] = _NONE
    articles: frozenset[str] = _NONE
    polite: frozenset[str] = _NONE
    dummies: frozenset[str] = _NONE
    be: frozenset[str] = _NONE
    clause_marks: frozenset[str] = _NONE
    auxiliaries: frozenset[str] = _NONE
    before_verbs: frozenset[str] = _NONE
    before_subjects: frozenset[str] = _NONE
    before_asked: frozenset[str] = _NONE
    prepositions: frozenset[str] = _NONE
    definite: frozenset[str] = _NONE
    more: frozenset[str] = _NONE
    again: frozenset[str] = _NONE
    go_on: frozenset[str] = _NONE

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """Return a language of the file."""
        roles = {role: frozenset(words.split()) for role, words in table.items() if isinstance(words, str)}
        roles["function"] |= roles["question"] | roles["pointers"]
        openers = tuple(f"{opener} " for opener in table["openers"])
        return cls(openers, table.get("has_capital_nouns", False), **roles)


_LANGUAGES: Final = {name: _Language.of(table) for name, table in _WORDS.items()}


@dataclass(frozen=True, slots=True)
class Said:
    """An earlier question, the titles of the documents that its answer cites, and the answer."""

    question: str
    titles: tuple[str, ...] = ()
    answer: str = ""


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
    ends_clause: bool  #: Whether a comma follows.
    language: _Language

    @property
    def folded(self) -> str:
        return self.text.casefold().replace(_APOSTROPHE, "'")

    @property
    def is_name(self) -> bool:
        """Whether it names something: a code, a number, or with a capital inside a sentence or inside the word."""
        if self.folded in self.language.function:
            return False
        is_capital = self.text[0].isupper() and not self.is_first
        return self.is_code or self.is_number or is_capital or any(map(str.isupper, self.text[1:]))

    @property
    def is_number(self) -> bool:
        return _SEPARATOR.sub("", self.text).isdecimal()

    @property
    def is_code(self) -> bool:
        return _CODE.fullmatch(self.text) is not None

    @property
    def is_content(self) -> bool:
        return self.is_name or self.folded.removesuffix("'s") not in self.language.function

    @property
    def is_pointer(self) -> bool:
        """Whether it can refer to something earlier: not "Sie", the polite you, which has a capital."""
        is_polite = self.folded in self.language.polite and self.text[0].isupper()
        return self.folded in self.language.pointers and not is_polite


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
    language = answer = ""
    for said in before:
        language = _language_of(said.question, language)
        found = _words(said.question, language)
        own = () if context and _is_request(found, said.question) and not _continues(found) else _content(found)
        titles = said.titles or (context.titles if context else ())
        if context is None or not depends(said.question, language, answer):
            context = _Context(own, own, titles)
        else:
            kept = _not_replaced(context.topic, own)
            context = _Context(own, (*own, *kept) if _replaces(found) else context.topic, titles)
        answer = said.answer
    language = _language_of(text, language)
    is_follow_up = context is not None and depends(text, language, answer)
    carried = _carried(_words(text, language), context) if context is not None and is_follow_up else ()
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


def _language_of(question: str, before: str) -> str:
    """Return the language of a question whose words are known; in doubt that of the one before, or else English."""
    seeming = question_language(question)
    return seeming if seeming in _LANGUAGES else before or "english"


def depends(question: str, language: str = "", answer: str = "") -> bool:
    """Return whether a question can only be understood with the earlier questions.

    `language` is that of the earlier ones, for a question that does not tell its own; `answer` is the last answer.
    """
    if _SYNTAX.search(question) or is_small_talk(question):
        return False
    language = _language_of(question, language)
    found = _words(question, language)
    own = _content(found)
    if _has_open_pronoun(found):
        return len(own) < _ENOUGH_WORDS
    if _continues(found):
        return len(own) < _ENOUGH_CONTINUED
    if _is_request(found, question):
        return True
    if _refers_back(found, answer):
        return len(own) < _ENOUGH_DEFINITE
    # Too little content: "Since when?", "Who signs?", "What is the deadline?". A verb with an object ("drain the
    # queue") is enough, and so is a subject ("what does ammonia do").
    is_question = question.rstrip().endswith("?") or (bool(found) and found[0].folded in found[0].language.question)
    is_elliptical = is_question and len(own) <= _MAX_ELLIPTICAL_WORDS and not _has_subject(found)
    return is_elliptical and not any(word.is_name for word in own)


def _has_open_pronoun(found: Sequence[_Word]) -> bool:
    return any(
        word.is_pointer and not _is_filler(found, place) and not _has_antecedent(found, place)
        for place, word in enumerate(found)
    )


def _continues(found: Sequence[_Word]) -> bool:
    """Return whether a question begins like the rest of another one: "and in Kiel?", "for children"."""
    if not found:
        return False
    language, words = found[0].language, [word.folded for word in found]
    is_phrase = words[0] in language.prepositions and language.question.isdisjoint(words[1:]) and not _is_divided(found)
    return is_phrase or " ".join((*words, "")).startswith(language.openers)


def _is_divided(found: Sequence[_Word]) -> bool:
    """Return whether a clause follows a comma, or something new is introduced: "pour réserver une salle"."""
    has_clause = any(word.ends_clause and any(it.is_content for it in found[at + 1 :]) for at, word in enumerate(found))
    return has_clause or (_has_subject(found) and len(_content(found)) > _MAX_ELLIPTICAL_WORDS)


def _has_subject(found: Sequence[_Word]) -> bool:
    return any(
        after.is_content and before.folded in before.language.before_subjects
        for before, after in itertools.pairwise(found)
    )


def _is_about_the_answer(found: Sequence[_Word]) -> bool:
    """Return whether a question has no topic: "tell me more", "show me the whole list", "step 2", "which document?"."""
    topics = [word for word in _content(found) if not (word.is_number and len(word.text) < _MIN_CODE)]
    return bool(found) and all(word.folded in word.language.more | word.language.again for word in topics)


def _is_request(found: Sequence[_Word], question: str) -> bool:
    """Return whether a question without a topic is one about the answer, and no keyword: "examples?", not "points"."""
    is_keyword = len(found) == 1 and found[0].is_content and found[0].folded not in found[0].language.go_on
    return _is_about_the_answer(found) and (question.rstrip().endswith("?") or not is_keyword)


def _refers_back(found: Sequence[_Word], answer: str) -> bool:
    """Return whether a question without a name is about something of the last answer: "How long is the code valid?"."""
    meant = {
        after.folded
        for before, after in itertools.pairwise(found)
        if before.folded in before.language.definite and after.is_content
    }
    if not meant or any(word.is_name for word in found):
        return False
    return not meant.isdisjoint(_TOKEN.findall(answer.casefold()))


def asks_for_more(question: str, before: str) -> bool:
    """Return whether a follow-up to an earlier question only wants more of its answer: "tell me more"."""
    found = _words(question, _language_of(question, _language_of(before, "")))
    return _is_about_the_answer(found) and any(word.folded in word.language.more for word in found)


def _is_filler(found: Sequence[_Word], place: int) -> bool:
    """Return whether a pronoun is a dummy: "does *it* take to", "is *there* a", "we noticed *that* a"."""
    word, after = found[place].folded, [it.folded for it in found[place + 1 :]]
    before = found[place - 1] if place else None
    language = found[place].language
    if word in language.numerals and place + 1 < len(found):
        return found[place + 1].is_content
    if word in language.articles:  # "Is *das* erlaubt?" is none.
        return any(it.is_name for it in found[place + 1 : place + 3])
    if word == "that" and before is not None and after:
        return before.is_content
    if word in language.dummies and {*after[:1], before.folded if before else ""} & language.be:
        return True
    return word in _DUMMY_SUBJECTS and bool(language.clause_marks & {*after[1:]})


def _has_antecedent(found: Sequence[_Word], place: int) -> bool:
    """Return whether a noun before a pronoun can be its antecedent.

    A verb cannot: "do we *pay* for it"; nor the noun of the question word: "what *colour* do they wear".
    """
    language = found[place].language
    no_noun = language.before_verbs
    if place and found[place - 1].folded in language.auxiliaries:
        no_noun |= language.before_asked
    return any(
        word.is_name
        or (not language.has_capital_nouns and at > 0 and word.is_content and found[at - 1].folded not in no_noun)
        for at, word in enumerate(found[:place])
    )


def _carried(found: Sequence[_Word], context: _Context) -> tuple[str, ...]:
    own, earlier = _content(found), (*context.last, *context.topic)
    replaces = _replaces(found)
    wanted = _not_replaced(earlier, own) if replaces else earlier
    carried = list(_new((it.text for it in wanted), own))[:_MAX_CARRIED]
    if not replaces and context.titles:
        language = found[0].language
        title = [it.text for it in _content(_words_of(context.titles[0], language)) if not it.text.isdecimal()]
        if _SHARED * len(_stems(title) & _stems(it.text for it in earlier)) >= len(title):
            carried += list(_new(title, [*own, *_words_of(" ".join(carried), language)]))[:_MAX_TITLE_WORDS]
    return tuple(carried)


def _replaces(found: Sequence[_Word]) -> bool:
    """Return whether a follow-up replaces a part of the earlier question: "and in 2025?", not "and who signs it?"."""
    return _continues(found) and any(word.is_content for word in found) and not _has_open_pronoun(found)


def _not_replaced(earlier: Iterable[_Word], own: Sequence[_Word]) -> Iterator[_Word]:
    kinds = {_kind(it) for it in own} - {""}
    return (word for word in earlier if _kind(word) not in kinds)


def _kind(word: _Word) -> str:
    """Return what a name is of, so that another one of the kind takes its place; empty for what is no name."""
    if _YEAR.fullmatch(word.text):
        return "year"
    if word.is_number or word.is_code:
        return "number" if word.is_number else _DIGITS.sub("0", word.folded)
    return "name" if word.is_name and not word.language.has_capital_nouns else ""


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


def _content(found: Sequence[_Word]) -> tuple[_Word, ...]:
    return tuple(word for word in found if word.is_content)


def _words(text: str, language: str) -> tuple[_Word, ...]:
    return _words_of(after_small_talk(text[:_MAX_CHARACTERS]), _LANGUAGES[language])


@lru_cache(maxsize=_CACHED_TEXTS)
def _words_of(text: str, language: _Language) -> tuple[_Word, ...]:
    found = []
    for match in _TOKEN.finditer(text):
        before = text[max(0, match.start() - _LOOK_BACK_CHARACTERS) : match.start()].rstrip()
        is_first = (before or ".")[-1] in ".!?:¿"
        found.append(_Word(match.group(), is_first, text.startswith(",", match.end()), language))
    return tuple(found)
