"""Measure a preset on a question set: each case is searched through the production path with the user's access."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from corecube.access import Principal
from retrieval.engine.types import Verdict
from retrieval.models import Case, SearchRecord
from retrieval.ranking.measures import Measures, mean, measure
from retrieval.records.judgments import grades_of, ranked_passages
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.stages.resources import Resources


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case."""

    case: UUID
    query: str
    is_answerable: bool
    #: None for a case that the documents do not answer.
    measures: Measures | None
    #: None if the deadline passed first.
    verdict: Verdict | None

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

    The searches leave no record. Raises as `search` does.
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
