"""Runs of question sets: queued by an admin, measured by a worker case by case, and read within the reader's scope.

The rows are the queue. A run that lost its worker goes on where it was: its results are stored one by one.
"""

import logging
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.database import each_taken, first_or
from corecube.errors import ConflictError, CoreCubeError, InvalidRequestError, NotFoundError, NotPermittedError
from corecube.sanitise import storable
from corecube.version import VERSION
from retrieval.engine.types import Verdict
from retrieval.evaluation import components
from retrieval.evaluation.answers import QUOTES
from retrieval.evaluation.case_answers import AnswerFigures, Spent
from retrieval.evaluation.components import USUAL, Components
from retrieval.evaluation.question_sets import (
    CaseResult,
    Measuring,
    SetResult,
    measured_case,
    principal_of_case,
    searched_connections,
)
from retrieval.evaluation.use_grades import UseGrades
from retrieval.models import Case, EvaluationRun, QuestionSet, RunCase, Trial
from retrieval.presets.catalog import preset_named
from retrieval.ranking.measures import Measures
from retrieval.records.judgments import PassageId
from retrieval.search.configuration import configuration_of
from retrieval.search.request import SearchRequest
from retrieval.stages.resources import Resources

logger = logging.getLogger(__name__)

_MAX_OPEN: Final = 20  #: Runs that wait or run, of everybody.
_MAX_NAME_LENGTH: Final = 120
LOST: Final = timedelta(minutes=2)  #: A worker that is silent for so long is lost.
_LOST_ANSWERING: Final = timedelta(minutes=15)  #: Where language models answer, which may take their time limits.
_Status = EvaluationRun.Status
_OPEN: Final = (_Status.QUEUED, _Status.RUNNING)
_EMPTY: Final = SearchRequest(text="")


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
    has_answers: bool = False  #: Whether each question is answered too.
    components: Components = USUAL


def queue_run(question_set: QuestionSet, asked: RunRequest, *, principal: Principal) -> EvaluationRun:
    """Store a run of a set's cases and return it; the caller wakes a worker.

    Raises InvalidRequestError for a set without cases, ConflictError while too many runs wait, and what the preset's
    configuration and `components.check` raise: UnknownPresetError, UnknownVersionError without a draft, OverridesError,
    TunablesError, InvalidRequestError.
    """
    preset = preset_named(asked.preset)
    configuration_of(preset, overrides=asked.overrides, draft=asked.is_draft, values=asked.values)
    components.check(asked.components)
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
            has_answers=asked.has_answers,
            index_number=asked.components.index,
            is_reranked=asked.components.is_reranked,
            language_model=asked.components.language_model,
            user=principal.user,
            connection_ids=searched_connections(principal),
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
    now = timezone.now()
    is_silent = Q(has_answers=False, active_at__lt=now - LOST) | Q(active_at__lt=now - _LOST_ANSWERING)
    EvaluationRun.objects.filter(is_silent, status=_Status.RUNNING).update(status=_Status.QUEUED)


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

    Raises NotPermittedError, ConflictError for a preset or index that changed meanwhile, and what `search` raises.
    """
    if not (run.user.is_active and run.user.is_admin):
        raise NotPermittedError("The user of this run no longer has access.")
    principal = Principal(run.user)
    resources = resources or components.resources_for(components.of_run(run))
    cases = list(cases)
    done = set(run.results.values_list("query", flat=True))
    version = QuestionSet.objects.values_list("version", flat=True).get(pk=run.question_set_id)
    run.set_version = version if not done or run.set_version == version else None
    if done and run.searched_index not in {None, resources.index.id}:
        raise ConflictError("Another embedding index was activated while the run measured.")
    run.release, run.index = VERSION, resources.encoder.name
    run.searched_index, run.reranker = resources.index.id, components.reranker_name(resources.reranker)
    # Results of before may have been found in connections that the user has lost since.
    searched = {principal, *(principal_of_case(it, principal) for it in cases)}
    reached = {pk for it in searched for pk in searched_connections(it)}
    run.connection_ids = sorted({*reached, *(run.connection_ids if done else ())})
    run.save(update_fields=["set_version", "release", "index", "searched_index", "reranker", "connection_ids"])
    # Numbers that are not fixed are read again for each case: a change of the preset ends the run.
    asked = asking(run, values=run.values if run.is_fixed else None)
    how = _measuring(run, cases)
    for case in cases:
        if case.query in done:
            continue
        if not goes_on():
            return False
        result = measured_case(case, asked, principal=principal, resources=resources, how=how)
        if not run.fingerprint and result.fingerprint:
            run.version, run.fingerprint, run.values = result.version, result.fingerprint, result.values
            run.save(update_fields=["version", "fingerprint", "values"])
        elif result.fingerprint not in {"", run.fingerprint}:
            raise ConflictError("The preset was changed while the run measured it.")
        _store(run, result)
    return True


def asking(run: EvaluationRun, request: SearchRequest = _EMPTY, *, values: Mapping[str, float] | None) -> SearchRequest:
    """Return a request that searches as a run does, with these numbers or with those of its preset or draft, for None.

    The resources are those of its components.
    """
    judge = "" if run.language_model == QUOTES else run.language_model
    if values is not None:
        version = None if run.is_draft or run.is_fixed or run.overrides else run.version
        return replace(request, preset=run.preset, draft=False, values=values, version=version, judge_model=judge)
    return replace(request, preset=run.preset, draft=run.is_draft, overrides=run.overrides, judge_model=judge)


def _measuring(run: EvaluationRun, cases: Iterable[Case]) -> Measuring:
    return Measuring(
        counts_model=run.counts == EvaluationRun.Counts.MODEL,
        use=UseGrades.read(it.query for it in cases) if run.counts == EvaluationRun.Counts.USE else None,
        answered_by=run.language_model if run.has_answers else None,
    )


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
            "answer": asdict(result.answer) if result.answer else {},
            "model_tokens": result.spent.tokens,
            "cost": result.spent.cost,
        },
    )


def _end(run: EvaluationRun, status: EvaluationRun.Status, message: str = "") -> None:
    running = EvaluationRun.objects.filter(pk=run.pk, status=_Status.RUNNING)
    running.update(status=status, message=message, finished_at=timezone.now())
    logger.info("evaluation_run.ended id=%s status=%s", run.pk, status)


def result_of(run: EvaluationRun) -> SetResult:
    """Return the results of a run so far, by query."""
    expected = _with_expected(run)
    return SetResult(run.preset, tuple(_case_result(row, expected) for row in run.results.all()))


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
        "answer",
        "model_tokens",
        "cost",
    )
    rows, expected = run.results.values(*names), _with_expected(run)
    return SetResult(run.preset, tuple(_case_result(RunCase(**row), expected) for row in rows))


def _with_expected(run: EvaluationRun) -> set[UUID]:
    """Return the cases of a run's set that have an expected answer now."""
    return set(run.question_set.cases.exclude(answers=[]).values_list("pk", flat=True))


def _case_result(row: RunCase, expected: Container[UUID | None]) -> CaseResult:
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
        answer=AnswerFigures.of_json(row.answer) if row.answer else None,
        has_expected=row.case_id in expected,
        spent=Spent(row.model_tokens, row.cost),
    )
