"""Sweeps: a worker measures many configurations on one half of a set's queries, and the best one on the other half.

A trial is a run, and its results are stored one by one: a sweep that lost its worker goes on where it was. A sweep is
read as a run is, only within the scope it searched in.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import sqrt
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.database import each_taken, first_or
from corecube.errors import ConflictError, CoreCubeError, InvalidRequestError, NotFoundError
from retrieval.engine.tunables import TunableFacts
from retrieval.errors import TunablesError
from retrieval.evaluation import comparing, runs
from retrieval.evaluation.latency import percentiles
from retrieval.evaluation.objectives import checked_objective
from retrieval.evaluation.question_sets import CaseResult, SetResult, measured_case, searched_connections
from retrieval.index import active
from retrieval.models import Case, EvaluationRun, QuestionSet, Sweep, Trial
from retrieval.presets.catalog import TUNED, preset_named
from retrieval.presets.preset import Preset, PresetConfig
from retrieval.ranking.measures import Objective
from retrieval.ranking.significance import Difference
from retrieval.ranking.tuning import (
    Measured,
    Range,
    Round,
    best_first,
    drawn,
    grid,
    halving,
    in_hash_order,
    in_tuning_half,
    planned_searches,
    range_of,
)
from retrieval.search import runtime
from retrieval.search.configuration import configuration_of
from retrieval.search.request import SearchRequest

logger = logging.getLogger(__name__)

MAX_GRID_SETTINGS: Final = 3
MAX_SETTINGS: Final = 10
MAX_TRIALS: Final = 200
_MAX_OPEN: Final = 5
_MAX_MS: Final = 600_000
_WARM_UP: Final = 10  #: Searches that are not measured, at the start and after each interruption.
_Status = EvaluationRun.Status
_OPEN: Final = (_Status.QUEUED, _Status.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """What a sweep is to try."""

    preset: str
    ranges: Sequence[Range]
    method: Sweep.Method = Sweep.Method.GRID
    trials: int = 16  #: Configurations to draw; a grid has as many as combinations.
    objective: Objective = field(default_factory=Objective)
    max_p95_ms: float | None = None


def queue_sweep(question_set: QuestionSet, asked: SweepRequest, *, principal: Principal) -> Sweep:
    """Store a sweep that starts from the live version, with its trials, and return it; the caller wakes a worker.

    Raises InvalidRequestError, TunablesError for values out of bounds, ConflictError while too many sweeps wait, and
    UnknownPresetError.
    """
    preset = preset_named(asked.preset)
    if preset.name not in TUNED:
        raise InvalidRequestError("The numbers of a reference version cannot be changed.")
    checked_objective(asked.objective)
    if asked.max_p95_ms is not None and not 0 < asked.max_p95_ms <= _MAX_MS:
        raise InvalidRequestError("The maximum p95 must be more than 0 ms and at most 10 minutes.")
    tuning, held_out = halves(question_set)
    if not (tuning and held_out):
        raise InvalidRequestError("This question set has too few answerable cases: each half of them needs one.")
    if Sweep.objects.filter(status__in=_OPEN).count() >= _MAX_OPEN:
        raise ConflictError(f"{_MAX_OPEN} sweeps already wait.")
    base = configuration_of(preset).config
    tried = _configurations(base, asked)
    scope = searched_connections(principal)
    with transaction.atomic():
        sweep = Sweep.objects.create(
            question_set=question_set,
            preset=preset.name,
            base=preset.changes(base),
            method=asked.method,
            ranges=[_written(it, asked.method) for it in asked.ranges],
            measure=asked.objective.measure,
            cutoff=asked.objective.cutoff,
            max_p95_ms=asked.max_p95_ms,
            user=principal.user,
            connection_ids=scope,
            total=_total(asked.method, len(tried), tuning, held_out),
        )
        for number, values in enumerate(({}, *tried)):
            _add_trial(sweep, number, preset, base, values)
        audit.record("sweep.queued", actor=principal.user, subject=question_set.slug, sweep=str(sweep.pk))
    return sweep


def halves(question_set: QuestionSet) -> tuple[int, int]:
    """Return the number of answerable cases that choose a configuration, and of those that measure its gain."""
    queries = _answerable(question_set)
    tuning = sum(map(in_tuning_half, queries))
    return tuning, len(queries) - tuning


def detectable_gain(cases: int) -> float:
    """Return the gain in nDCG@10 that a paired test on so many cases finds four times of five, at p < 0.05.

    It supposes differences with a standard deviation of 0.18, as between two presets on the sample company.
    """
    return (1.96 + 0.84) * 0.18 / sqrt(cases)


def sweeps_for(principal: Principal) -> QuerySet[Sweep]:
    """Return the sweeps that a principal may read: those whose every connection is in its scope."""
    found = Sweep.objects.filter(connection_ids__contained_by=scope_for(principal).connection_ids)
    return found.select_related("question_set", "user")


def sweep_for(sweep_id: UUID, principal: Principal) -> Sweep:
    """Return a sweep that a principal may read; raise NotFoundError for any other."""
    return first_or(NotFoundError("There is no sweep with that id."), sweeps_for(principal).filter(pk=sweep_id))


def cancel(sweep: Sweep, *, actor: Principal) -> None:
    """End a sweep that waits or runs, before its next search; its results stay."""
    if Sweep.objects.filter(pk=sweep.pk, status__in=_OPEN).update(status=_Status.CANCELLED, finished_at=timezone.now()):
        _end_trials(sweep, _Status.CANCELLED)
        audit.record("sweep.cancelled", actor=actor.user, subject=sweep.question_set.slug, sweep=str(sweep.pk))


def delete(sweep: Sweep, *, actor: Principal) -> None:
    """Delete a sweep with its trials and their results."""
    with transaction.atomic():
        audit.record("sweep.deleted", actor=actor.user, subject=sweep.question_set.slug, sweep=str(sweep.pk))
        EvaluationRun.objects.filter(trial__sweep=sweep).delete()
        sweep.delete()


def are_waiting() -> bool:
    """Return whether sweeps wait for a worker."""
    return Sweep.objects.filter(status=_Status.QUEUED).exists()


def take_up_lost() -> None:
    """Let sweeps wait again whose worker was lost."""
    lost = Sweep.objects.filter(status=_Status.RUNNING, active_at__lt=timezone.now() - runs.LOST)
    lost.update(status=_Status.QUEUED)


def run_waiting() -> int:
    """Run the sweeps that wait, the oldest first, and return how many there were."""
    ran = 0
    for sweep in each_taken(Sweep.objects.filter(status=_Status.QUEUED).order_by("created_at"), _take):
        run_sweep(sweep)
        ran += 1
    return ran


def _take(sweep: Sweep) -> None:
    now = timezone.now()
    sweep.status, sweep.started_at, sweep.active_at = _Status.RUNNING, sweep.started_at or now, now
    sweep.save(update_fields=["status", "started_at", "active_at"])


def run_sweep(sweep: Sweep) -> None:
    """Measure what a sweep has no result for yet, until it is done, cancelled or fails."""
    try:
        _Work(sweep).run()
    except CoreCubeError as error:
        _end(sweep, _Status.FAILED, str(error))
    except Exception:
        _end(sweep, _Status.FAILED, str(CoreCubeError()))
        logger.exception("sweep.broken id=%s", sweep.pk)
    else:
        _end(sweep, _Status.DONE)


class _Work:
    """A worker's way through a sweep."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.objective = Objective(sweep.measure, sweep.cutoff)
        self.trials = list(sweep.trials.select_related("run__question_set", "run__user"))
        cases = {case.query: case for case in sweep.question_set.cases.filter(is_answerable=True)}
        ordered = [cases[query] for query in in_hash_order(cases)]
        self.tuning = [case for case in ordered if in_tuning_half(case.query)]
        self.held_out = [case for case in ordered if not in_tuning_half(case.query)]
        self.measured = (
            EvaluationRun.objects.filter(trial__sweep=sweep, results__isnull=False).values("results").count()
        )

    def run(self) -> None:
        """Choose the best trial on the tuning half, and measure it and the first one on the other half."""
        self._warm_up()
        survivors = self.trials
        for it in _rounds(self.sweep.method, len(self.trials) - 1, len(self.tuning)):
            best = best_first(map(_facts, survivors[1:]), max_p95_ms=self.sweep.max_p95_ms)[: it.configurations]
            numbers = {0, *(one.number for one in best)}
            survivors = [trial for trial in survivors if trial.number in numbers]
            for trial in survivors:
                if not self._measure(trial, self.tuning[: it.queries]):
                    return
        best_facts = best_first(map(_facts, survivors), max_p95_ms=self.sweep.max_p95_ms)[0]
        best_trial = self.trials[best_facts.number if best_facts.meets(self.sweep.max_p95_ms) else 0]
        for trial in {0: self.trials[0], best_trial.number: best_trial}.values():
            if not self._measure(trial, self.held_out, is_tuning=False):
                return
        self.sweep.trials.update(is_best=False)
        best_trial.is_best = True
        best_trial.save(update_fields=["is_best"])
        found = self._gain(best_trial)
        self.sweep.held_out = asdict(found) if found else None
        self.sweep.save(update_fields=["held_out"])

    def _measure(self, trial: Trial, cases: list[Case], *, is_tuning: bool = True) -> bool:
        # The encoder is passed so that no trial finds the vectors of queries that another one had computed.
        if not runs.measure_missing(trial.run, cases, self._goes_on, resources=runtime.resources(active.encoder())):
            return False
        if trial.run.connection_ids != self.sweep.connection_ids:
            self.sweep.connection_ids = sorted({*self.sweep.connection_ids, *trial.run.connection_ids})
            self.sweep.save(update_fields=["connection_ids"])
        if is_tuning:
            results = self._results(trial, {case.query for case in cases})
            values = [it for case in results if (it := comparing.objective_value(case, self.objective)) is not None]
            trial.queries, trial.mean = len(results), sum(values) / len(values) if values else None
            trial.p95_ms = percentiles([case.milliseconds for case in results])["p95"] if results else None
            trial.save(update_fields=["queries", "mean", "p95_ms"])
        return True

    def _goes_on(self) -> bool:
        still_runs = Sweep.objects.filter(pk=self.sweep.pk, status=_Status.RUNNING)
        goes_on = still_runs.update(active_at=timezone.now(), measured=self.measured)
        self.measured += 1
        return bool(goes_on)

    def _warm_up(self) -> None:
        asked = SearchRequest(text="", preset=self.sweep.preset, values=self.sweep.base)
        for case in self.tuning[:_WARM_UP]:
            measured_case(
                case, asked, principal=Principal(self.sweep.user), resources=runtime.resources(active.encoder())
            )

    def _results(self, trial: Trial, queries: set[str]) -> list[CaseResult]:
        return [it for it in runs.result_of(trial.run).cases if it.query in queries]

    def _gain(self, best: Trial) -> Difference | None:
        """Return the best trial's difference from the first one on the held-out half."""
        queries = {case.query for case in self.held_out}
        first, second = (SetResult("", tuple(self._results(it, queries))) for it in (self.trials[0], best))
        return comparing.objective_difference(comparing.compared(first, second), self.objective)


def _facts(trial: Trial) -> Measured:
    return Measured(trial.number, trial.mean, trial.p95_ms)


def _rounds(method: str, configurations: int, queries: int) -> tuple[Round, ...]:
    is_random = method == Sweep.Method.RANDOM
    return halving(configurations, queries) if is_random else (Round(configurations, queries),)


def _total(method: str, configurations: int, tuning: int, held_out: int) -> int:
    """Return the number of searches: the trials on the tuning half, the first one also, and two on the other half."""
    return planned_searches(_rounds(method, configurations, tuning)) + tuning + 2 * held_out


def _answerable(question_set: QuestionSet) -> list[str]:
    return list(question_set.cases.filter(is_answerable=True).values_list("query", flat=True))


def _configurations(base: PresetConfig, asked: SweepRequest) -> list[dict[str, float]]:
    """Return the combinations to try; raise InvalidRequestError, TunablesError."""
    facts = {it.name: it for it in base.declared_below()}
    _check_ranges(asked, facts)
    if asked.method == Sweep.Method.GRID:
        found = grid(asked.ranges)
        for values in found:
            base.with_values(values)
    else:
        # Some combinations break a rule between two settings: they are drawn again, within reason.
        many = drawn(asked.ranges, count=10 * asked.trials, seed=asked.trials)
        found = [values for values in many if not base.problems(values)][: asked.trials]
    present = base.values()
    found = [values for values in found if any(present[name] != value for name, value in values.items())]
    if not found:
        raise InvalidRequestError("These values leave nothing to try.")
    return found


def _check_ranges(asked: SweepRequest, facts: Mapping[str, TunableFacts]) -> None:
    is_grid = asked.method == Sweep.Method.GRID
    limit = MAX_GRID_SETTINGS if is_grid else MAX_SETTINGS
    names = [it.name for it in asked.ranges]
    if not 1 <= len(names) <= limit:
        raise InvalidRequestError(f"A sweep needs 1 to {limit} settings.")
    if len(set(names)) < len(names):
        raise InvalidRequestError("Each setting can be given once.")
    problems = {}
    for it in asked.ranges:
        fact = facts.get(it.name)
        bounds = it.values if is_grid else (it.low, it.high)
        wrong = [fact.problem(value) for value in bounds] if fact else ["is not a setting"]
        if problem := next(filter(None, wrong), "" if bounds else "needs values"):
            problems[it.name] = problem
        elif not is_grid and it.low >= it.high:
            problems[it.name] = "needs a low and a higher value"
    if problems:
        raise TunablesError(problems)
    size = asked.trials
    if is_grid:
        size = 1
        for it in asked.ranges:
            size *= len(set(it.values))
    if not 1 <= size <= MAX_TRIALS:
        raise InvalidRequestError(f"A sweep tries 1 to {MAX_TRIALS} configurations, not {size:,}.")


def _written(it: Range, method: str) -> dict[str, Any]:
    if method == Sweep.Method.GRID:
        return {"name": it.name, "values": list(it.values)}
    return {"name": it.name, "low": it.low, "high": it.high}


def _add_trial(sweep: Sweep, number: int, preset: Preset, base: PresetConfig, values: Mapping[str, float]) -> None:
    # It runs from the start and is silent, so that no worker takes it up as a run by itself.
    run = EvaluationRun.objects.create(
        question_set=sweep.question_set,
        preset=sweep.preset,
        values=preset.changes(base.with_values(values)),
        is_fixed=True,
        user=sweep.user,
        status=EvaluationRun.Status.RUNNING,
        connection_ids=sweep.connection_ids,
    )
    Trial.objects.create(sweep=sweep, number=number, values=values, run=run)


def _end(sweep: Sweep, status: EvaluationRun.Status, message: str = "") -> None:
    running = Sweep.objects.filter(pk=sweep.pk, status=_Status.RUNNING)
    measured = EvaluationRun.objects.filter(trial__sweep=sweep, results__isnull=False).values("results").count()
    if running.update(status=status, message=message, finished_at=timezone.now(), measured=measured):
        _end_trials(sweep, status)
    logger.info("sweep.ended id=%s status=%s", sweep.pk, status)


def _end_trials(sweep: Sweep, status: EvaluationRun.Status) -> None:
    trials = EvaluationRun.objects.filter(trial__sweep=sweep, status=EvaluationRun.Status.RUNNING)
    trials.update(status=status, finished_at=timezone.now())


def ranges_of(sweep: Sweep) -> list[Range]:
    """Return what a sweep varies."""
    facts = {it.name: it for it in TUNED[sweep.preset].defaults.declared_below()}
    return [range_of(it, is_whole=it["name"] in facts and facts[it["name"]].is_whole) for it in sweep.ranges]


def best_of(sweep: Sweep) -> Trial | None:
    """Return the trial that was chosen; None while there is none."""
    return sweep.trials.filter(is_best=True).select_related("run").first()


def gain_of(sweep: Sweep) -> Difference | None:
    """Return the gain on the held-out half; None before it is known, and without judged queries there."""
    return Difference(**sweep.held_out) if sweep.held_out else None


def as_json(sweep: Sweep) -> dict[str, Any]:
    """Return a sweep with its trials, for JSON."""
    best = best_of(sweep)
    return {
        "id": str(sweep.pk),
        "question_set": sweep.question_set.slug,
        "preset": sweep.preset,
        "method": sweep.method,
        "ranges": sweep.ranges,
        "measure": sweep.measure,
        "cutoff": sweep.cutoff,
        "max_p95_ms": sweep.max_p95_ms,
        "status": sweep.status,
        "message": sweep.message,
        "created_at": sweep.created_at.isoformat(),
        "finished_at": sweep.finished_at.isoformat() if sweep.finished_at else None,
        "measured": sweep.measured,
        "total": sweep.total,
        "best": best.number if best else None,
        "held_out": sweep.held_out,
        "trials": [
            {
                "number": it.number,
                "values": it.values,
                "run": str(it.run_id),
                "queries": it.queries,
                "mean": it.mean,
                "p95_ms": it.p95_ms,
            }
            for it in sweep.trials.all()
        ],
    }
