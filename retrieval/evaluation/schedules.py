"""Schedules: runs of the live version after syncs, at night and after upgrades, their trend, and an alarm."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean
from typing import Final

from django.db import transaction
from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.errors import CoreCubeError, InvalidRequestError
from corecube.version import VERSION
from retrieval.evaluation import comparing, runs
from retrieval.evaluation.case_answers import AnswerMeasures
from retrieval.evaluation.objectives import checked_objective
from retrieval.models import EvaluationRun, QuestionSet, Schedule, Sync
from retrieval.presets.catalog import PRESETS
from retrieval.ranking.measures import Objective

logger = logging.getLogger(__name__)

_NIGHT_HOUR: Final = 2  #: In the installation's time zone.
_PAUSE: Final = timedelta(hours=1)  #: Between the runs after syncs, and attempts after an upgrade.
_MAX_POINTS: Final = 30
_OPEN: Final = (EvaluationRun.Status.QUEUED, EvaluationRun.Status.RUNNING)
_Trigger = EvaluationRun.Trigger


@dataclass(frozen=True, slots=True)
class Point:
    """A run of the trend."""

    run: EvaluationRun
    mean: float
    answers: AnswerMeasures | None = None  #: The means of its answers; None if it did not answer.


@dataclass(frozen=True, slots=True)
class Trend:
    """What the runs of a schedule found, the oldest first."""

    schedule: Schedule
    points: Sequence[Point]

    @property
    def objective(self) -> Objective:
        """What is followed."""
        return Objective(self.schedule.measure, self.schedule.cutoff)

    @property
    def alarm(self) -> str:
        """What is wrong; empty while the newest run is not below the minimum."""
        return self.alarm_of(self.schedule.preset)

    def alarm_of(self, preset: str) -> str:
        """Return what is wrong, with this name of the preset; empty while the newest run is not below the minimum."""
        minimum = self.schedule.min_mean
        if minimum is None or not self.points or self.points[-1].mean >= minimum:
            return ""
        schedule = self.schedule
        return (
            f"{self.objective.label} of {preset} on {schedule.question_set.name} is "
            f"{self.points[-1].mean:.3f}, below {minimum:g}."
        )


def set_schedule(  # noqa: PLR0913 -- the fields of a form
    question_set: QuestionSet,
    *,
    preset: str,
    objective: Objective,
    actor: Principal,
    after_syncs: bool,
    nightly: bool,
    after_upgrades: bool,
    has_answers: bool = False,
    min_mean: float | None,
) -> Schedule | None:
    """Store when a preset's live version is measured on a set, with the actor's access; None and no schedule for never.

    Raises InvalidRequestError.
    """
    if preset not in PRESETS:
        raise InvalidRequestError("There is no such preset.")
    checked_objective(objective)
    if min_mean is not None and not 0 <= min_mean <= 1:
        raise InvalidRequestError("The minimum must be between 0 and 1.")
    when = {"after_syncs": after_syncs, "nightly": nightly, "after_upgrades": after_upgrades}
    with transaction.atomic():
        audit.record(
            "schedule.set", actor=actor.user, subject=question_set.slug, preset=preset, min_mean=min_mean, **when
        )
        if not any(when.values()):
            question_set.schedules.filter(preset=preset).delete()
            return None
        followed = {
            "measure": objective.measure,
            "cutoff": objective.cutoff,
            "min_mean": min_mean,
            "has_answers": has_answers,
        }
        stored, _ = Schedule.objects.update_or_create(
            question_set=question_set, preset=preset, defaults={**when, **followed, "user": actor.user}
        )
    return stored


def queue_due(now: datetime | None = None) -> int:
    """Queue the runs that are due and return how many; a run that cannot be queued is tried again at the next call."""
    now, queued = now or timezone.localtime(), 0
    for schedule in Schedule.objects.select_related("question_set", "user"):
        with transaction.atomic():
            # Two workers queue no run twice.
            if not Schedule.objects.select_for_update(skip_locked=True, of=("self",)).filter(pk=schedule.pk).exists():
                continue
            trigger = _due(schedule, now)
            if trigger is None:
                continue
            name = f"Schedule: {trigger.label.lower()}"
            asked = runs.RunRequest(schedule.preset, name=name, trigger=trigger, has_answers=schedule.has_answers)
            try:
                with transaction.atomic():
                    runs.queue_run(schedule.question_set, asked, principal=Principal(schedule.user))
                queued += 1
            except CoreCubeError as error:
                logger.info("schedule.not_queued set=%s error=%s", schedule.question_set.slug, type(error).__name__)
    return queued


def _due(schedule: Schedule, now: datetime) -> EvaluationRun.Trigger | None:
    """Return why a run is due; None if none is, or if one waits."""
    own = _runs(schedule)
    if own.filter(status__in=_OPEN).exists():
        return None
    last = own.aggregate(at=Max("created_at"))["at"] or schedule.created_at
    is_rested = now - last >= _PAUSE
    if (
        schedule.after_upgrades
        and is_rested
        and own.exclude(release="").exists()
        and not own.filter(release=VERSION).exists()
    ):
        return _Trigger.UPGRADE
    tonight = now.replace(hour=_NIGHT_HOUR, minute=0, second=0, microsecond=0)
    if schedule.nightly and last < (tonight if now >= tonight else tonight - timedelta(days=1)):
        return _Trigger.NIGHT
    changed = Sync.objects.filter(
        Q(added__gt=0) | Q(changed__gt=0) | Q(deleted__gt=0),
        finished_at__gt=last,
        connection__in=scope_for(Principal(schedule.user)).connection_ids,
    ).exclude(kind=Sync.Kind.DRY_RUN)
    if schedule.after_syncs and is_rested and changed.exists():
        return _Trigger.SYNC
    return None


def trends(question_set: QuestionSet, principal: Principal) -> list[Trend]:
    """Return the trends of a set's schedules, as far as a principal may read their runs."""
    found = question_set.schedules.select_related("question_set", "user")
    return [Trend(it, _points(it, principal, _MAX_POINTS)) for it in found]


def alarms(principal: Principal) -> list[Trend]:
    """Return the schedules whose newest run is below its minimum, with that run, if a principal may read it."""
    found = Schedule.objects.filter(min_mean__isnull=False).select_related("question_set", "user")
    trends = [Trend(it, _points(it, principal, 1)) for it in found]
    return [it for it in trends if it.alarm]


def _runs(schedule: Schedule) -> QuerySet[EvaluationRun]:
    scheduled = (_Trigger.SYNC, _Trigger.NIGHT, _Trigger.UPGRADE)
    return EvaluationRun.objects.filter(
        question_set=schedule.question_set, preset=schedule.preset, trigger__in=scheduled
    )


def _points(schedule: Schedule, principal: Principal, limit: int) -> list[Point]:
    readable = runs.runs_for(principal).filter(pk__in=_runs(schedule), status=EvaluationRun.Status.DONE)
    objective = Objective(schedule.measure, schedule.cutoff)
    points = []
    for run in reversed(readable[:limit]):
        result = runs.result_of(run)
        values = [comparing.objective_value(it, objective) for it in result.cases]
        known = [it for it in values if it is not None]
        if known:
            points.append(Point(run, fmean(known), result.answer_means if result.answers else None))
    return points
