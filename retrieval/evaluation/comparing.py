"""Runs of a question set compared query by query."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean
from typing import Final

from retrieval.evaluation.case_answers import ANSWER_MEASURES
from retrieval.evaluation.question_sets import CaseResult, SetResult
from retrieval.ranking import significance
from retrieval.ranking.measures import Measures, Objective
from retrieval.ranking.significance import Difference

MAX_OTHERS: Final = 4  #: Runs that are compared with a baseline at once.
_MEASURES: Final = tuple(field.name for field in fields(Measures))


@dataclass(frozen=True, slots=True)
class Compared:
    """A query in two runs."""

    first: CaseResult
    second: CaseResult

    def values(self, measure: str) -> tuple[float, float] | None:
        """Return a measure of both, of the ranking or of the answer; None where one of them lacks it."""
        first, second = (value_of(it, measure) for it in (self.first, self.second))
        return None if first is None or second is None else (first, second)


def value_of(case: CaseResult, measure: str) -> float | None:
    """Return a measure of a case's ranking or of its answer; None without it."""
    measured = (case.answer and case.answer.measures) if measure in ANSWER_MEASURES else case.measures
    return getattr(measured, measure, None)


def compared(first: SetResult, second: SetResult) -> tuple[Compared, ...]:
    """Return the queries of both runs, by text."""
    others = {it.query: it for it in second.cases}
    return tuple(Compared(it, others[it.query]) for it in first.cases if it.query in others)


def differences(pairs: Sequence[Compared]) -> dict[str, Difference]:
    """Return how much greater each measure is in the second run, over the queries that have it in both."""
    found = {}
    for name in (*_MEASURES, *ANSWER_MEASURES):
        values = [both for pair in pairs if (both := pair.values(name)) is not None]
        if result := significance.difference([first for first, _ in values], [second for _, second in values]):
            found[name] = result
    return found


def objective_difference(pairs: Sequence[Compared], objective: Objective) -> Difference | None:
    """Return how much greater an objective is in the second run, over the queries that have it in both."""
    values = objective_values(pairs, objective)
    return significance.difference([first for first, _ in values], [second for _, second in values])


def objective_values(pairs: Sequence[Compared], objective: Objective) -> list[tuple[float, float]]:
    """Return an objective of both runs for each query that has it in both."""
    return [
        (first, second)
        for pair in pairs
        if (first := objective_value(pair.first, objective)) is not None
        if (second := objective_value(pair.second, objective)) is not None
    ]


def objective_value(case: CaseResult, objective: Objective) -> float | None:
    """Return an objective of a result; None for an unanswerable case and one without relevant passages."""
    return objective.value(case.ranking, case.grades) if case.measures else None


@dataclass(frozen=True, slots=True)
class Measured:
    """A measure in several runs, over the queries that have it in all of them."""

    means: tuple[float, ...]  #: The baseline's first.
    #: The other runs less the baseline, with p-values that are corrected for their number by Holm's method.
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """A query in several runs."""

    query: str
    values: tuple[float, ...]  #: The baseline's first.

    @property
    def width(self) -> float:
        """The greatest value less the smallest."""
        return max(self.values) - min(self.values)


def in_all(results: Sequence[SetResult]) -> list[tuple[CaseResult, ...]]:
    """Return the queries that all runs have, by text, each with its result in every run."""
    cases = [{it.query: it for it in result.cases} for result in results]
    return [tuple(it[query] for it in cases) for query in cases[0] if all(query in it for it in cases)]


def measured_in_all(rows: Sequence[Sequence[CaseResult]]) -> dict[str, Measured]:
    """Return each measure that some query has in every run, by name; the first result of a row is the baseline's."""
    found = {}
    for name in (*_MEASURES, *ANSWER_MEASURES):
        if values := list(_known_in_all(rows, name).values()):
            baseline, *others = zip(*values, strict=True)
            raw = significance.differences(baseline, others)
            corrected = zip(raw, significance.holm([it.p_value for it in raw]), strict=True)
            differences = tuple(replace(it, p_value=p_value) for it, p_value in corrected)
            found[name] = Measured(tuple(map(fmean, (baseline, *others))), differences)
    return found


def spreads(rows: Sequence[Sequence[CaseResult]], measure: str) -> list[Spread]:
    """Return the queries that have a measure in every run, the widest spread first."""
    found = [Spread(query, values) for query, values in _known_in_all(rows, measure).items()]
    return sorted(found, key=lambda it: (-it.width, it.query))


def _known_in_all(rows: Sequence[Sequence[CaseResult]], measure: str) -> dict[str, tuple[float, ...]]:
    values = {row[0].query: [value_of(it, measure) for it in row] for row in rows}
    return {query: known for query, all_of in values.items() if len(known := _known(all_of)) == len(all_of)}


def _known(values: Sequence[float | None]) -> tuple[float, ...]:
    return tuple(it for it in values if it is not None)
