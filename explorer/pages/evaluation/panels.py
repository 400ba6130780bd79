"""Question sets; judgments are counted within the reader's scope."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Q

from corecube.scope import AccessScope
from explorer.pages.evaluation.judge_panels import MeasureCell, measure_cells
from retrieval.evaluation.question_set import SetResult
from retrieval.models import Case, QuestionSet
from retrieval.records.judgments import normalised_query, standing


@dataclass(frozen=True, slots=True)
class SetRow:
    """A question set in the list."""

    slug: str
    name: str
    cases: int
    unanswerable: int
    #: Answerable cases with a judgment that the reader may see.
    judged: int


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A case in its set."""

    id: UUID
    query: str
    is_answerable: bool
    judgments: int
    created_by: str
    #: The search that it was saved from; None for none.
    record: UUID | None


@dataclass(frozen=True, slots=True)
class CaseResultRow:
    """The result of a case."""

    query: str
    is_answerable: bool
    #: Empty for an unanswerable case.
    measures: tuple[MeasureCell, ...]
    is_refused: bool
    #: A refusal of an answerable case, or an answer to an unanswerable one.
    is_wrong: bool


@dataclass(frozen=True, slots=True)
class SetResultPanel:
    """The result of a preset on a set."""

    preset: str
    measures: tuple[MeasureCell, ...]
    measured: int
    cases: tuple[CaseResultRow, ...]
    #: "3 of 4"; empty without such cases.
    refused: str
    wrongly_refused: str


def set_rows(scope: AccessScope) -> tuple[SetRow, ...]:
    """Return all sets by name."""
    sets = QuestionSet.objects.annotate(size=Count("cases"), open=Count("cases", filter=Q(cases__is_answerable=False)))
    cases = list(Case.objects.filter(is_answerable=True).values_list("question_set_id", "query"))
    counts = _judgments([query for _, query in cases], scope)
    judged = Counter(set_id for set_id, query in cases if counts.get(normalised_query(query)))
    return tuple(SetRow(it.slug, it.name, it.size, it.open, judged[it.pk]) for it in sets)


def case_rows(question_set: QuestionSet, scope: AccessScope) -> tuple[CaseRow, ...]:
    """Return the cases of a set."""
    cases = list(question_set.cases.select_related("created_by"))
    counts = _judgments([case.query for case in cases], scope)
    return tuple(
        CaseRow(
            id=case.pk,
            query=case.query,
            is_answerable=case.is_answerable,
            judgments=counts.get(normalised_query(case.query), 0),
            created_by=case.created_by.username if case.created_by else "",
            record=case.record_id,
        )
        for case in cases
    )


def result_panel(result: SetResult) -> SetResultPanel:
    """Return the panel of a result."""
    return SetResultPanel(
        preset=result.preset,
        measures=measure_cells(result.means),
        measured=result.measured,
        cases=tuple(
            CaseResultRow(
                query=case.query,
                is_answerable=case.is_answerable,
                measures=measure_cells(case.measures) if case.measures else (),
                is_refused=case.is_refused,
                is_wrong=case.is_refused == case.is_answerable,
            )
            for case in result.cases
        ),
        refused=_share(result.refusals),
        wrongly_refused=_share(result.wrongly_refused),
    )


def _share(counts: tuple[int, int]) -> str:
    return f"{counts[0]} of {counts[1]}" if counts[1] else ""


def _judgments(queries: Iterable[str], scope: AccessScope) -> Mapping[str, int]:
    """Return the number of judgments by normalised query."""
    wanted = {normalised_query(query) for query in queries}
    counted = standing(scope).filter(query__in=wanted).values("query").annotate(number=Count("pk"))
    return {row["query"]: row["number"] for row in counted}
