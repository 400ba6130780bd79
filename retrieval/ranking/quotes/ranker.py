"""The order of candidates for a quotation: two learned linear models, by words, then by words and vectors. Pure.

For a follow-up question, what the answer before it quoted is behind what is new.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from retrieval.engine.types import QueryTerms, Vector
from retrieval.engine.words import TermFinder, stemmer
from retrieval.ranking.answerability.logistic import LogisticModel
from retrieval.ranking.quotes.asked import FORMS, Asked, asked, holds
from retrieval.ranking.quotes.candidates import Candidate
from retrieval.text.units import UnitKind

MAX_ENCODED: Final = 24
WORD_SIGNALS: Final = (
    "coverage",
    "coverage_place",
    "coverage_before",
    "rank",
    "cosine_passage",
    "form",
    "form_missing",
    "length",
    "fragment",
    "steps_asked",
    "list_asked",
    "one_asked",
    "row",
)
VECTOR_SIGNALS: Final = (*WORD_SIGNALS, "cosine")
_MIN_WORDS: Final = 4
_REPEATED: Final = 1.5  #: Deduction, in log-odds, for a repetition that holds nothing of what is new in the question.
_MOSTLY: Final = 0.8


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with its signals and its score, a log-odds."""

    candidate: Candidate
    signals: Mapping[str, float]
    score: float


@dataclass(frozen=True, slots=True)
class Asking:
    """A question as the ranker reads it."""

    terms: QueryTerms
    language: str
    kinds: frozenset[Asked]

    @classmethod
    def of(cls, question: str, terms: QueryTerms, language: str) -> Self:
        """Return it for a question and its terms, stemmed in a text search configuration's language."""
        return cls(terms, language, asked(question, language))

    @property
    def finder(self) -> TermFinder:
        """What finds its terms in a text."""
        return TermFinder(self.terms.terms, stemmer(self.language))


def word_signals(found: Sequence[Candidate], asking: Asking) -> list[dict[str, float]]:
    """Return the signals of each candidate that need no vector of it.

    Coverages are shares of the question's idf, 0 to 1; `cosine_passage` is how far its passage's cosine is below the
    best one; `form` tells that it holds a form that is asked for, such as a date, `form_missing` that it lacks one;
    `steps_asked` marks whole numbered lists where steps are asked for, `list_asked` whole lists and tables where
    several things are asked for, and `one_asked` those where neither is.
    """
    finder = asking.finder
    total = finder.weight(frozenset(term.lexeme for term in asking.terms.terms)) or 1.0
    forms = asking.kinds & FORMS
    wants_steps, wants_list = Asked.STEPS in asking.kinds, Asked.LIST in asking.kinds
    places = {place: finder.found(place) for place in {it.place for it in found}}
    best = max((it.passage.hit.signals.get("cosine", 0.0) for it in found), default=0.0)

    def signals(it: Candidate) -> dict[str, float]:
        own = finder.found(it.text)
        held = [holds(kind, it.text, asking.language) for kind in forms]
        return {
            "coverage": finder.weight(own) / total,
            "coverage_place": finder.weight(places[it.place] - own) / total,
            "coverage_before": finder.weight(finder.found(it.before) - places[it.place] - own) / total,
            "rank": -math.log(it.passage.number),
            "cosine_passage": it.passage.hit.signals.get("cosine", best) - best,
            "form": float(any(held)),
            "form_missing": float(not all(held)),
            "length": math.log(len(it.text) / 100),
            "fragment": float(_is_fragment(it)),
            "steps_asked": float(it.is_group and wants_steps and UnitKind.STEP in it.kinds),
            "list_asked": float(it.is_group and wants_list),
            "one_asked": float(it.is_group and not wants_steps and not wants_list),
            "row": float(not it.kinds.isdisjoint({UnitKind.ROW, UnitKind.FIGURES})),
        }

    return [signals(it) for it in found]


def _is_fragment(candidate: Candidate) -> bool:
    """Return whether it says nothing alone: an unfinished line, a few words, a lead-in without what it announces."""
    unit = candidate.quoted[-1]
    if unit.kind is not UnitKind.SENTENCE or any(map(str.isdigit, unit.text)):
        return False
    return not unit.is_finished or unit.text.endswith(":") or len(candidate.text.split()) < _MIN_WORDS


@dataclass(frozen=True, slots=True)
class QuoteRanker:
    """Orders candidates: by words alone, and the best of these again with their cosines."""

    by_words: LogisticModel
    by_vectors: LogisticModel

    def best_first(self, found: Sequence[Candidate], asking: Asking) -> list[Scored]:
        """Return all candidates by their words, best first."""
        scored = (
            Scored(it, signals, self.by_words.log_odds(signals))
            for it, signals in zip(found, word_signals(found, asking), strict=True)
        )
        return sorted(scored, key=lambda it: -it.score)

    def again(self, found: Sequence[Scored], vectors: NDArray[np.float32], question: Vector) -> list[Scored]:
        """Return candidates by words and by the cosines of their unit vectors, shape (n, dim), best first."""
        scored = []
        for it, cosine in zip(found, (vectors @ question).tolist(), strict=True):
            signals = {**it.signals, "cosine": cosine}
            scored.append(Scored(it.candidate, signals, self.by_vectors.log_odds(signals)))
        return sorted(scored, key=lambda it: -it.score)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return a stored ranker; raises KeyError for an incomplete one."""
        return cls(LogisticModel.from_json(data["by_words"]), LogisticModel.from_json(data["by_vectors"]))


def embedded_text(candidate: Candidate) -> str:
    """Return a candidate with its place, as chunks are embedded: "Ask a week ahead." has no subject without it."""
    return f"{candidate.place}\n{candidate.text}"


@cache
def shipped() -> QuoteRanker:
    """Return the ranker that comes with CoreCube; `shipped.json` says what it was fitted on."""
    text = (files("retrieval.ranking.quotes") / "shipped.json").read_text(encoding="utf-8")
    return QuoteRanker.from_json(json.loads(text))


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What a follow-up question adds to the question before it, and what was quoted then."""

    own: TermFinder  #: Finds the terms of its own text, not those of earlier questions.
    forms: frozenset[Asked]  #: The forms that only it asks for.
    language: str
    quoted: str  #: The answer before it, normalised.

    @classmethod
    def of(cls, question: str, terms: QueryTerms, language: str, *, before: str, answer: str) -> Self:
        """Return it for a question as it was asked, the terms of its search, and the question and answer before it."""
        stem = stemmer(language)
        found = TermFinder(terms.terms, stem).found(question)
        own = TermFinder(tuple(term for term in terms.terms if term.lexeme in found), stem)
        forms = (asked(question, language) - asked(before, language)) & FORMS
        return cls(own, forms, language, _normalised(answer))

    def narrowed(self, found: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Return candidates; of a table that was quoted only the rows that hold what is new in the question."""
        return tuple(one for candidate in found for one in self._narrowed(candidate))

    def ranked(self, found: Sequence[Scored]) -> list[Scored]:
        """Return candidates again, best first; what mostly repeats the answer before only if it is still the best."""
        repetitions = [self._repetition(it.candidate) for it in found]
        scored = [replace(it, score=it.score - _REPEATED * by) for it, by in zip(found, repetitions, strict=True)]
        ordered = sorted(zip(scored, repetitions, strict=True), key=lambda pair: -pair[0].score)
        return [it for place, (it, repetition) in enumerate(ordered) if place == 0 or repetition <= _MOSTLY]

    def _narrowed(self, candidate: Candidate) -> Iterator[Candidate]:
        rows = []
        if candidate.kinds == {UnitKind.ROW} and candidate.is_group and self._is_quoted(candidate):
            columns = self.own.found(candidate.quoted[0].header)
            rows = [row for row in candidate.run if self.own.found(candidate.units[row].text) - columns]
        yield from (replace(candidate, run=range(row, row + 1)) for row in rows) if rows else (candidate,)

    def _repetition(self, candidate: Candidate) -> float:
        """Return how far a candidate only repeats, 0 to 1: less the more it holds of what is new in the question."""
        total = sum(term.idf for term in self.own.terms)
        if not self._is_quoted(candidate) or not (total or self.forms):
            return 0.0
        share = self.own.weight(self.own.found(candidate.text)) / total if total else 0.0
        return 1 - max(share, float(any(holds(form, candidate.text, self.language) for form in self.forms)))

    def _is_quoted(self, candidate: Candidate) -> bool:
        return all(_normalised(unit.text) in self.quoted for unit in candidate.quoted)


def _normalised(text: str) -> str:
    """Return text without differences of white space and without the signs of quotations and tables."""
    return " ".join(word for word in text.replace("\\[", "[").split() if word not in {">", "|"})
