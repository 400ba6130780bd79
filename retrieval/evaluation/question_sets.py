"""Question sets: add, mark and delete cases, each change an audit event, and measure a preset on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils.text import slugify

from corecube import audit
from corecube.access import Principal
from corecube.errors import InvalidRequestError
from corecube.models import User
from corecube.sanitise import storable
from retrieval.engine.types import Verdict
from retrieval.models import Case, QuestionSet, SearchRecord
from retrieval.ranking.measures import Measures, mean, measure
from retrieval.records.judgments import MAX_QUERY_LENGTH, grades_of, ranked_passages
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.stages.resources import Resources

MAX_CASES: Final = 5000
_MAX_NAME_LENGTH: Final = 120
_MAX_SLUG_LENGTH: Final = 50


def set_named(name: str, *, actor: User) -> QuestionSet:
    """Return the set with a name, created if missing; raise InvalidRequestError for an invalid name."""
    name = " ".join(storable(name).split())[:_MAX_NAME_LENGTH]
    slug = slugify(name)[:_MAX_SLUG_LENGTH].strip("-_")
    if not slug:
        raise InvalidRequestError("The name of a question set needs a letter or a digit.")
    with transaction.atomic():
        found, is_new = QuestionSet.objects.get_or_create(slug=slug, defaults={"name": name})
        if is_new:
            audit.record("question_set.created", actor=actor, subject=slug)
    return found


def save_case(
    question_set: QuestionSet,
    query: str,
    *,
    actor: User,
    is_answerable: bool = True,
    record: SearchRecord | None = None,
) -> tuple[Case, bool]:
    """Return a question's case, and whether it is new; raise InvalidRequestError for no question and a full set."""
    query = cut(query)
    if not query:
        raise InvalidRequestError("A case needs a question.")
    with transaction.atomic():
        QuestionSet.objects.select_for_update().get(pk=question_set.pk)
        if found := question_set.cases.filter(query=query).first():
            return found, False
        if question_set.cases.count() >= MAX_CASES:
            raise InvalidRequestError(f"A question set can have at most {MAX_CASES:,} cases.")
        case = Case.objects.create(
            question_set=question_set, query=query, is_answerable=is_answerable, record=record, created_by=actor
        )
        audit.record("case.saved", actor=actor, subject=question_set.slug, case=str(case.pk))
    return case, True


def mark_case(case: Case, *, is_answerable: bool, actor: User) -> None:
    """Set whether the documents answer a case's question."""
    case.is_answerable = is_answerable
    case.save(update_fields=["is_answerable"])
    audit.record(
        "case.marked", actor=actor, subject=case.question_set.slug, case=str(case.pk), is_answerable=is_answerable
    )


def delete_case(case: Case, *, actor: User) -> None:
    """Delete a case; the judgments of its question stay."""
    audit.record("case.deleted", actor=actor, subject=case.question_set.slug, case=str(case.pk))
    case.delete()


def delete_set(question_set: QuestionSet, *, actor: User) -> None:
    """Delete a set with its cases; the judgments of their questions stay."""
    with transaction.atomic():
        audit.record("question_set.deleted", actor=actor, subject=question_set.slug, cases=question_set.cases.count())
        question_set.delete()


def cut(query: str) -> str:
    """Return a question as stored in a case: trimmed, and cut to the maximum query length."""
    return storable(query).strip()[:MAX_QUERY_LENGTH].strip()


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case."""

    case: UUID
    query: str
    is_answerable: bool
    measures: Measures | None  #: None for a case that the documents do not answer.
    verdict: Verdict | None  #: None if the deadline passed first.

    @property
    def is_refused(self) -> bool:
        """Whether an answer would be refused."""
        return self.verdict is Verdict.NOT_ANSWERABLE


@dataclass(frozen=True, slots=True)
class SetResult:
    """The result of a set."""

    preset: str
    cases: tuple[CaseResult, ...]

    @property
    def means(self) -> Measures:
        """The mean of each measure over the answerable cases with it."""
        return mean([case.measures for case in self.cases if case.measures is not None])

    @property
    def measured(self) -> int:
        """The number of answerable cases with judgments."""
        return sum(case.measures is not None and case.measures.ndcg is not None for case in self.cases)

    @property
    def refusals(self) -> tuple[int, int]:
        """The number of refused unanswerable cases, and of all unanswerable cases."""
        return self._refused(answerable=False)

    @property
    def wrongly_refused(self) -> tuple[int, int]:
        """The number of refused answerable cases, and of all answerable cases."""
        return self._refused(answerable=True)

    def _refused(self, *, answerable: bool) -> tuple[int, int]:
        cases = [case for case in self.cases if case.is_answerable == answerable]
        return sum(case.is_refused for case in cases), len(cases)


def measure_cases(
    cases: Sequence[Case], *, preset: str, principal: Principal, resources: Resources | None = None
) -> SetResult:
    """Search for every case and return the results; without `resources` with those of the installation.

    The searches take the production path with the principal's access and leave no record. Raises as `search` does.
    """
    results: list[CaseResult] = []
    for case in cases:
        outcome = search(SearchRequest(text=case.query, preset=preset), principal=principal, resources=resources)
        SearchRecord.objects.filter(pk=outcome.id).delete()
        judged = outcome.state.answerability
        measures = None
        if case.is_answerable:
            grades = grades_of(case.query, viewer=principal.user, scope=outcome.state.scope)
            measures = measure(ranked_passages(outcome), {passage: it.grade for passage, it in grades.items()})
        results.append(
            CaseResult(case.pk, case.query, case.is_answerable, measures, judged.verdict if judged else None)
        )
    return SetResult(preset, tuple(results))
