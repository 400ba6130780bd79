"""Candidates for a follow-up question: what the answer before it quoted is behind what is new. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from retrieval.engine.words import TermFinder
from retrieval.ranking.quotes.asked import FORMS, Asked, asked, holds
from retrieval.ranking.quotes.candidates import Candidate
from retrieval.ranking.quotes.ranker import Asking, Scored
from retrieval.text.units import UnitKind

_REPEATED: Final = 1.5  #: Deduction, in log-odds, for a repetition that holds nothing of what is new in the question.
_MOSTLY: Final = 0.8  #: What repeats more than this is mostly a repetition.
_ABOUT_NEW: Final = 0.5  #: What holds more than this share of the question's own terms is about these.


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What a follow-up question adds to the question before it, and what was quoted then."""

    own: TermFinder  #: Finds the terms of its own text, not those of earlier questions.
    forms: frozenset[Asked]  #: The forms that only it asks for.
    language: str
    quoted: str  #: The answer before it, normalised.
    wants_more: bool  #: Whether it only asks for more of the answer.

    @classmethod
    def of(cls, question: str, asking: Asking, *, before: str, answer: str, wants_more: bool) -> Self:
        """Return it for a question as it was asked, and the question and answer before it."""
        found = asking.finder.found(question)
        own = replace(asking.finder, terms=tuple(term for term in asking.terms.terms if term.lexeme in found))
        forms = (asking.kinds - asked(before, asking.language)) & FORMS
        return cls(own, forms, asking.language, _normalised(answer), wants_more)

    def narrowed(self, found: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Return candidates; of a table that was quoted only the rows that hold what is new in the question."""
        return tuple(one for candidate in found for one in self._narrowed(candidate))

    def ranked(self, found: Sequence[Scored]) -> list[Scored]:
        """Return candidates again, best first, without those that mostly repeat the answer before.

        One that is still the best stays, unless another candidate is about what is new in the question.
        """
        repetitions = [self._repetition(it.candidate) for it in found]
        scored = [replace(it, score=it.score - _REPEATED * by) for it, by in zip(found, repetitions, strict=True)]
        ordered = sorted(zip(scored, repetitions, strict=True), key=lambda pair: -pair[0].score)
        has_more = self.wants_more and 0 in repetitions
        is_answered = has_more or any(self._is_about_new(it.candidate) for it in found)
        first = 0 if is_answered else 1
        return [it for place, (it, repetition) in enumerate(ordered) if place < first or repetition <= _MOSTLY]

    def _narrowed(self, candidate: Candidate) -> Iterator[Candidate]:
        rows = []
        if candidate.kinds == {UnitKind.ROW} and candidate.is_group and self._is_quoted(candidate):
            columns = self.own.found(candidate.quoted[0].header)
            rows = [row for row in candidate.run if self.own.found(candidate.units[row].text) - columns]
        yield from (replace(candidate, run=range(row, row + 1)) for row in rows) if rows else (candidate,)

    def _repetition(self, candidate: Candidate) -> float:
        """Return how far a candidate only repeats, 0 to 1: less the more it holds of what is new in the question."""
        if not self._is_quoted(candidate):
            return 0.0
        if self.wants_more:
            return 1.0
        if not (self.own.terms or self.forms):
            return 0.0
        return 1 - max(self._new(candidate), any(holds(form, candidate.text, self.language) for form in self.forms))

    def _is_about_new(self, candidate: Candidate) -> bool:
        """Return whether an unquoted candidate holds most of the question's own terms, and more than one."""
        holds_most = self._new(candidate) > _ABOUT_NEW and len(self.own.found(candidate.text)) > 1
        return holds_most and not self._is_quoted(candidate)

    def _new(self, candidate: Candidate) -> float:
        """Return how much of the question's own terms a candidate holds, 0 to 1 by their idf."""
        total = sum(term.idf for term in self.own.terms)
        return self.own.weight(self.own.found(candidate.text)) / total if total else 0.0

    def _is_quoted(self, candidate: Candidate) -> bool:
        return all(_normalised(unit.text) in self.quoted for unit in candidate.quoted)


def _normalised(text: str) -> str:
    """Return text without differences of white space and without the signs of quotations and tables."""
    return " ".join(word for word in text.replace("\\[", "[").split() if word not in {">", "|"})
