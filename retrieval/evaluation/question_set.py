"""Measuring a preset on a question set: each case is asked by the production path, as the person who measures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from corecube.access import Principal
from retrieval.engine.types import Verdict
from retrieval.models import Case, SearchRecord
from retrieval.ranking.measures import Measures, mean, measure
from retrieval.records.judgments import grades_of, ranked_passages
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.stages.resources import Resources


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What one case came to."""

    case: UUID
    query: str
    is_answerable: bool
    #: None for a case that the documents do not answer: a ranking has nothing to gain there.
    measures: Measures | None
    #: None where it was not judged in time.
    verdict: Verdict | None

    @property
    def is_refused(self) -> bool:
        """Whether an answer would be refused."""
        return self.verdict is Verdict.NOT_ANSWERABLE


@dataclass(frozen=True, slots=True)
class SetResult:
    """What a set came to."""

    preset: str
    cases: tuple[CaseResult, ...]

    @property
    def means(self) -> Measures:
        """The mean of each measure over the answerable cases that have it."""
        return mean([case.measures for case in self.cases if case.measures is not None])

    @property
    def measured(self) -> int:
        """Answerable cases with a judgment to measure against."""
        return sum(case.measures is not None and case.measures.ndcg is not None for case in self.cases)

    @property
    def refusals(self) -> tuple[int, int]:
        """How many of the unanswerable cases are refused, and how many there are."""
        unanswerable = [case for case in self.cases if not case.is_answerable]
        return sum(case.is_refused for case in unanswerable), len(unanswerable)

    @property
    def wrongly_refused(self) -> tuple[int, int]:
        """How many of the answerable cases are refused, and how many there are."""
        answerable = [case for case in self.cases if case.is_answerable]
        return sum(case.is_refused for case in answerable), len(answerable)


def measure_cases(
    cases: Sequence[Case], *, preset: str, principal: Principal, resources: Resources | None = None
) -> SetResult:
    """Ask every case and return what it came to; without `resources`, with the installation's own.

    The searches leave no record. Raises as `search` does.
    """
    return SetResult(preset, tuple(_measured(cases, preset, principal, resources)))


def _measured(
    cases: Sequence[Case], preset: str, principal: Principal, resources: Resources | None
) -> Iterator[CaseResult]:
    for case in cases:
        outcome = search(SearchRequest(text=case.query, preset=preset), principal=principal, resources=resources)
        SearchRecord.objects.filter(pk=outcome.id).delete()
        yield _result(case, outcome, principal)


def _result(case: Case, outcome: SearchOutcome, principal: Principal) -> CaseResult:
    judged = outcome.state.answerability
    measures = None
    if case.is_answerable:
        said = grades_of(case.query, viewer=principal.user, scope=outcome.state.scope)
        measures = measure(ranked_passages(outcome), {passage: it.grade for passage, it in said.items()})
    return CaseResult(case.pk, case.query, case.is_answerable, measures, judged.verdict if judged else None)
