"""Runs of question sets: queued by an admin, measured by a worker case by case, and read within the reader's scope.

The rows are the queue. A run that lost its worker goes on where it was: its results are stored one by one.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.database import each_taken, first_or
from corecube.errors import ConflictError, CoreCubeError, InvalidRequestError, NotFoundError, NotPermittedError
from corecube.sanitise import storable
from corecube.version import VERSION
from retrieval.engine.types import Verdict
from retrieval.evaluation.qrels import csv_line
from retrieval.evaluation.question_sets import CaseResult, SetResult, measured_case, principal_of_case
from retrieval.evaluation.use_grades import UseGrades
from retrieval.models import Case, EvaluationRun, QuestionSet, RunCase, Trial
from retrieval.presets.catalog import preset_named
from retrieval.ranking.measures import Measures, Objective
from retrieval.ranking.significance import Difference, difference
from retrieval.records.judgments import PassageId
from retrieval.search import runtime
from retrieval.search.configuration import configuration_of
from retrieval.search.request import SearchRequest
from retrieval.stages.resources import Resources

logger = logging.getLogger(__name__)

_MEASURES: Final = tuple(field.name for field in fields(Measures))
_MAX_OPEN: Final = 20  #: Runs that wait or run, of everybody.
_MAX_NAME_LENGTH: Final = 120
LOST: Final = timedelta(minutes=2)  #: A worker that is silent for so long is lost.
_Status = EvaluationRun.Status
_OPEN: Final = (_Status.QUEUED, _Status.RUNNING)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run is to measure."""

    preset: str
    is_draft: bool = False
    overrides: Mapping[str, object] | None = None
    name: str = ""
    #: Complete numbers instead of the live version's, as differences from the shipped defaults.
    values: Mapping[str, float] | None = None
    trigger: EvaluationRun.Trigger | str = ""
    counts: EvaluationRun.Counts | str = EvaluationRun.Counts.PEOPLE  #: Whose grades count.


def queue_run(question_set: QuestionSet, asked: RunRequest, *, principal: Principal) -> EvaluationRun:
    """Store a run of a set's cases and return it; the caller wakes a worker.

    Raises InvalidRequestError for a set without cases, ConflictError while too many runs wait, and what the preset's
    configuration raises: UnknownPresetError, UnknownVersionError without a draft, OverridesError, TunablesError.
    """
    preset = preset_named(asked.preset)
    configuration_of(preset, overrides=asked.overrides, draft=asked.is_draft, values=asked.values)
    if not question_set.cases.exists():
        raise InvalidRequestError("This question set has no cases.")
    if EvaluationRun.objects.filter(status__in=_OPEN, trial=None).count() >= _MAX_OPEN:
        raise ConflictError(f"{_MAX_OPEN} runs already wait.")
    with transaction.atomic():
        run = EvaluationRun.objects.create(
            question_set=question_set,
            name=" ".join(storable(asked.name).split())[:_MAX_NAME_LENGTH],
            preset=asked.preset,
            is_draft=asked.is_draft,
            overrides=dict(asked.overrides or {}),
            values=asked.values,
            is_fixed=asked.values is not None,
            trigger=asked.trigger,
            counts=asked.counts,
            user=principal.user,
            connection_ids=scope_for(principal).connection_ids,
        )
        audit.record("evaluation_run.queued", actor=principal.user, subject=question_set.slug, run=str(run.pk))
    return run


def runs_for(principal: Principal) -> QuerySet[EvaluationRun]:
    """Return the runs that a principal may read, trials of sweeps too: those whose every connection is in its scope."""
    return EvaluationRun.objects.filter(connection_ids__contained_by=scope_for(principal).connection_ids)


def run_for(run_id: UUID, principal: Principal) -> EvaluationRun:
    """Return a run that a principal may read; raise NotFoundError for any other."""
    found = runs_for(principal).select_related("question_set", "user").filter(pk=run_id)
    return first_or(NotFoundError("There is no evaluation run with that id."), found)


def cancel(run: EvaluationRun, *, actor: Principal) -> None:
    """End a run that waits or runs, before its next case; its results stay. Nothing happens to one that has ended."""
    _refuse_trial(run)
    open_run = EvaluationRun.objects.filter(pk=run.pk, status__in=_OPEN)
    if open_run.update(status=_Status.CANCELLED, finished_at=timezone.now()):
        audit.record("evaluation_run.cancelled", actor=actor.user, subject=run.question_set.slug, run=str(run.pk))


def delete(run: EvaluationRun, *, actor: Principal) -> None:
    """Delete a run with its results; raise ConflictError for a trial of a sweep, as `cancel` does."""
    _refuse_trial(run)
    with transaction.atomic():
        audit.record("evaluation_run.deleted", actor=actor.user, subject=run.question_set.slug, run=str(run.pk))
        run.delete()


def _refuse_trial(run: EvaluationRun) -> None:
    if Trial.objects.filter(run=run).exists():
        raise ConflictError("This run is a part of a sweep: cancel or delete the sweep.")


def are_waiting() -> bool:
    """Return whether runs wait for a worker."""
    return EvaluationRun.objects.filter(status=_Status.QUEUED).exists()


def take_up_lost() -> None:
    """Let runs wait again whose worker was lost."""
    lost = EvaluationRun.objects.filter(status=_Status.RUNNING, active_at__lt=timezone.now() - LOST)
    lost.update(status=_Status.QUEUED)


def run_waiting() -> int:
    """Measure the runs that wait, the oldest first, and return how many there were."""
    ran = 0
    for run in each_taken(EvaluationRun.objects.filter(status=_Status.QUEUED).order_by("created_at"), _take):
        measure_run(run)
        ran += 1
    return ran


def run_now(question_set: QuestionSet, asked: RunRequest, *, principal: Principal) -> EvaluationRun:
    """Measure a set's cases here instead of in a worker, and return the ended run; raises as `queue_run` does."""
    with transaction.atomic():
        run = queue_run(question_set, asked, principal=principal)
        _take(run)
    measure_run(run)
    run.refresh_from_db()
    return run


def _take(run: EvaluationRun) -> None:
    now = timezone.now()
    run.status, run.started_at, run.active_at = _Status.RUNNING, run.started_at or now, now
    run.save(update_fields=["status", "started_at", "active_at"])


def measure_run(run: EvaluationRun) -> None:
    """Measure the cases of a run that have no result yet, until it is done, cancelled or fails."""
    try:
        _measure(run)
    except CoreCubeError as error:
        _end(run, _Status.FAILED, str(error))
    except Exception:
        _end(run, _Status.FAILED, str(CoreCubeError()))
        logger.exception("evaluation_run.broken id=%s", run.pk)
    else:
        _end(run, _Status.DONE)


def _measure(run: EvaluationRun) -> None:
    def goes_on() -> bool:
        still_runs = EvaluationRun.objects.filter(pk=run.pk, status=_Status.RUNNING)
        return bool(still_runs.update(active_at=timezone.now()))

    measure_missing(run, run.question_set.cases.select_related("user"), goes_on)


def measure_missing(
    run: EvaluationRun, cases: Iterable[Case], goes_on: Callable[[], bool], *, resources: Resources | None = None
) -> bool:
    """Measure and store those of the cases that have no result; return False if `goes_on` ended it before a case.

    Raises NotPermittedError, ConflictError for a preset that was changed meanwhile, and what `search` raises.
    """
    if not (run.user.is_active and run.user.is_admin):
        raise NotPermittedError("The user of this run no longer has access.")
    principal, resources = Principal(run.user), resources or runtime.resources()
    cases = list(cases)
    done = set(run.results.values_list("query", flat=True))
    version = QuestionSet.objects.values_list("version", flat=True).get(pk=run.question_set_id)
    run.set_version = version if not done or run.set_version == version else None
    run.release, run.index = VERSION, resources.encoder.name
    # Results of before may have been found in connections that the user has lost since.
    searched = {principal, *(principal_of_case(it, principal) for it in cases)}
    reached = {pk for it in searched for pk in scope_for(it).connection_ids}
    run.connection_ids = sorted({*reached, *(run.connection_ids if done else ())})
    run.save(update_fields=["set_version", "release", "index", "connection_ids"])
    asked = SearchRequest(
        text="",
        preset=run.preset,
        draft=run.is_draft,
        overrides=run.overrides,
        values=run.values if run.is_fixed else None,
    )
    counts_model = run.counts == EvaluationRun.Counts.MODEL
    use = UseGrades.read(it.query for it in cases) if run.counts == EvaluationRun.Counts.USE else None
    for case in cases:
        if case.query in done:
            continue
        if not goes_on():
            return False
        result = measured_case(
            case, asked, principal=principal, resources=resources, counts_model=counts_model, use=use
        )
        if not run.fingerprint and result.fingerprint:
            run.version, run.fingerprint, run.values = result.version, result.fingerprint, result.values
            run.save(update_fields=["version", "fingerprint", "values"])
        elif result.fingerprint not in {"", run.fingerprint}:
            raise ConflictError("The preset was changed while the run measured it.")
        _store(run, result)
    return True


def _store(run: EvaluationRun, result: CaseResult) -> None:
    RunCase.objects.get_or_create(
        run=run,
        query=result.query,
        defaults={
            "case_id": result.case,
            "is_answerable": result.is_answerable,
            "measures": asdict(result.measures) if result.measures else {},
            "ranking": [[str(document), digest] for document, digest in result.ranking],
            "grades": [[str(it.document_id), it.content_hash, grade] for it, grade in result.grades.items()],
            "other_grades": result.other_grades,
            "verdict": result.verdict.value if result.verdict else "",
            "confidence": result.confidence,
            "milliseconds": result.milliseconds,
            "tokens": result.tokens,
            "degraded": list(result.degraded),
        },
    )


def _end(run: EvaluationRun, status: EvaluationRun.Status, message: str = "") -> None:
    running = EvaluationRun.objects.filter(pk=run.pk, status=_Status.RUNNING)
    running.update(status=status, message=message, finished_at=timezone.now())
    logger.info("evaluation_run.ended id=%s status=%s", run.pk, status)


def result_of(run: EvaluationRun) -> SetResult:
    """Return the results of a run so far, by query."""
    return SetResult(run.preset, tuple(map(_case_result, run.results.all())))


def figures_of(run: EvaluationRun) -> SetResult:
    """Return the results of a run without rankings and grades, which take most of the memory: for lists of runs."""
    names = (
        "case_id",
        "query",
        "is_answerable",
        "measures",
        "verdict",
        "confidence",
        "milliseconds",
        "tokens",
        "degraded",
    )
    rows = run.results.values(*names)
    return SetResult(run.preset, tuple(_case_result(RunCase(**row)) for row in rows))


def _case_result(row: RunCase) -> CaseResult:
    return CaseResult(
        case=row.case_id,
        query=row.query,
        is_answerable=row.is_answerable,
        measures=Measures(**row.measures) if row.measures else None,
        verdict=Verdict(row.verdict) if row.verdict else None,
        confidence=row.confidence,
        ranking=tuple(PassageId(UUID(document), digest) for document, digest in row.ranking),
        grades={PassageId(UUID(document), digest): grade for document, digest, grade in row.grades},
        other_grades=row.other_grades,
        milliseconds=row.milliseconds,
        tokens=row.tokens,
        degraded=tuple(row.degraded),
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """A query in two runs."""

    first: CaseResult
    second: CaseResult

    def values(self, measure: str) -> tuple[float, float] | None:
        """Return a measure of both; None where one of them lacks it."""
        first, second = (getattr(it.measures, measure, None) for it in (self.first, self.second))
        return None if first is None or second is None else (first, second)


def compared(first: SetResult, second: SetResult) -> tuple[Compared, ...]:
    """Return the queries of both runs, by text."""
    others = {it.query: it for it in second.cases}
    return tuple(Compared(it, others[it.query]) for it in first.cases if it.query in others)


def differences(pairs: Sequence[Compared]) -> dict[str, Difference]:
    """Return how much greater each measure is in the second run, over the queries that have it in both."""
    found = {}
    for name in _MEASURES:
        values = [both for pair in pairs if (both := pair.values(name)) is not None]
        if result := difference([first for first, _ in values], [second for _, second in values]):
            found[name] = result
    return found


def objective_difference(pairs: Sequence[Compared], objective: Objective) -> Difference | None:
    """Return how much greater an objective is in the second run, over the queries that have it in both."""
    values = objective_values(pairs, objective)
    return difference([first for first, _ in values], [second for _, second in values])


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


def trec_run(result: SetResult) -> str:
    """Return the rankings as a TREC run file: query number, Q0, passage, rank, score, tag.

    Queries count from 1 in the order of the results; the score falls with the rank.
    """
    return "".join(
        f"{number} Q0 {it.document_id}:{it.content_hash} {rank} {1 / rank:.6f} {result.preset}\n"
        for number, case in enumerate(result.cases, start=1)
        for rank, it in enumerate(case.ranking, start=1)
    )


def trec_qrels(result: SetResult) -> str:
    """Return the grades that a run was measured against as TREC qrels, for the queries of `trec_run`."""
    return "".join(
        f"{number} 0 {it.document_id}:{it.content_hash} {grade}\n"
        for number, case in enumerate(result.cases, start=1)
        for it, grade in case.grades.items()
    )


def csv_of(result: SetResult) -> str:
    """Return the figures of each query as CSV: measures, verdict, confidence, milliseconds, tokens, fallbacks."""
    head = ("query", "answerable", *_MEASURES, "verdict", "confidence", "milliseconds", "tokens", "degraded")
    return csv_line(head) + "".join(map(_csv_case, result.cases))


def _csv_case(case: CaseResult) -> str:
    measures = (getattr(case.measures, name, None) for name in _MEASURES)
    known = (*measures, case.verdict, case.confidence, round(case.milliseconds, 1), case.tokens)
    figures = ("" if it is None else it for it in known)
    return csv_line((case.query, "yes" if case.is_answerable else "no", *figures, " ".join(case.degraded)))


def as_json(run: EvaluationRun, result: SetResult) -> dict[str, Any]:
    """Return a run with its figures and the result of each case, for JSON."""
    return {**figures_json(run, result), "results": [_case_json(it) for it in result.cases]}


def figures_json(run: EvaluationRun, result: SetResult) -> dict[str, Any]:
    """Return a run with its figures, for JSON."""
    return {
        "id": str(run.pk),
        "name": run.name,
        "question_set": run.question_set.slug,
        "preset": run.preset,
        "draft": run.is_draft,
        "overrides": run.overrides,
        "values": run.values,
        "trigger": run.trigger,
        "set_version": run.set_version,
        "counts": run.counts,
        "version": run.version,
        "fingerprint": run.fingerprint,
        "release": run.release,
        "embedding_model": run.index,
        "status": run.status,
        "message": run.message,
        "created_at": run.created_at.isoformat(),
        "finished_at": run.finished_at.isoformat() if run.finished_at else None,
        "cases": len(result.cases),
        "measured": result.measured,
        "measures": asdict(result.means),
        "rightly_refused": result.refusals,
        "wrongly_refused": result.wrongly_refused,
        "answerability": asdict(result.answerability) if result.answerability else None,
        "latency_ms": result.milliseconds,
        "mean_tokens": result.tokens,
        "degraded": result.degraded,
    }


def _case_json(case: CaseResult) -> dict[str, Any]:
    return {
        "query": case.query,
        "answerable": case.is_answerable,
        "measures": asdict(case.measures) if case.measures else None,
        "verdict": case.verdict,
        "confidence": case.confidence,
        "milliseconds": round(case.milliseconds, 1),
        "tokens": case.tokens,
        "degraded": case.degraded,
        "other_grades": case.other_grades,
        "ranking": [{"document": str(it.document_id), "passage": it.content_hash} for it in case.ranking],
        "grades": [
            {"document": str(it.document_id), "passage": it.content_hash, "grade": grade}
            for it, grade in case.grades.items()
        ],
    }
