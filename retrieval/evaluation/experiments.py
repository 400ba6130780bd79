"""Experiments: started and stopped by admins, and what people's use says about both sides."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from corecube import audit
from corecube.access import Principal
from corecube.database import first_or
from corecube.errors import ConflictError, InvalidRequestError, NotFoundError
from corecube.sanitise import storable
from retrieval.errors import UnknownVersionError
from retrieval.evaluation.use_grades import USED
from retrieval.models import Experiment, Impression, PresetVersion
from retrieval.presets.catalog import preset_named
from retrieval.ranking.examination import use_value
from retrieval.ranking.interleaving import Preference, Team
from retrieval.search.configuration import SHIPPED, configuration_of
from retrieval.search.live import contenders_of, end_finished
from retrieval.search.request import Contender

MAX_DAYS: Final = 90
MAX_QUESTIONS: Final = 100_000
_MAX_NAME_LENGTH: Final = 120
_MAX_LISTED: Final = 20
_Passage = tuple[UUID, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRequest:
    """An experiment to start."""

    name: str
    #: Preset and number of its version; 0 for the shipped defaults, None for the live version.
    first: tuple[str, int | None]
    second: tuple[str, int | None]
    share: int  #: Percent of the questions, 1 to 100.
    includes_api: bool = False
    ends_at: datetime | None = None
    max_questions: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What the use of the interleaved answers says."""

    experiment: Experiment
    logged: int  #: Its questions that the query log still has.
    not_counted: int  #: Those of them that only one side answered as it should.
    preference: Preference

    @property
    def sides(self) -> Mapping[Team, str]:
        """Both sides: "corecube 3"."""
        first, second = contenders_of(self.experiment)
        return {Team.A: first.label, Team.B: second.label}

    def as_json(self) -> dict[str, Any]:
        """Return the report for JSON."""
        found, stored = self.preference, self.experiment
        low, high = found.interval or (None, None)
        fields = ("id", "name", "share", "includes_api", "ends_at", "max_questions", "questions", "is_running")
        return {
            **{name: getattr(stored, name) for name in (*fields, "started_at", "ended_at")},
            "a": {"preset": stored.preset_a, "version": stored.number_a},
            "b": {"preset": stored.preset_b, "version": stored.number_b},
            "logged": self.logged,
            "not_counted": self.not_counted,
            "with_credit": found.questions,
            "wins_a": found.wins_a,
            "wins_b": found.wins_b,
            "ties": found.ties,
            "delta": found.delta,
            "low": low,
            "high": high,
            "p_value": found.p_value,
            "winner": found.winner,
        }


def start(asked: ExperimentRequest, *, actor: Principal) -> Experiment:
    """Start an experiment, which takes effect with the next search.

    Raises InvalidRequestError, ConflictError while another one runs, UnknownPresetError and UnknownVersionError.
    """
    name = " ".join(storable(asked.name).split())[:_MAX_NAME_LENGTH]
    first, second = _contender(*asked.first), _contender(*asked.second)
    _check(asked, name)
    if (first.preset, first.values) == (second.preset, second.values):
        raise InvalidRequestError("Both sides are the same configuration.")
    end_finished()
    try:
        with transaction.atomic():
            stored = Experiment.objects.create(
                name=name,
                preset_a=first.preset,
                number_a=first.number,
                values_a=first.values,
                preset_b=second.preset,
                number_b=second.number,
                values_b=second.values,
                share=asked.share,
                includes_api=asked.includes_api,
                ends_at=asked.ends_at,
                max_questions=asked.max_questions,
                started_by=actor.user,
            )
            audit.record(
                "experiment.started",
                actor=actor.user,
                subject=name,
                experiment=str(stored.pk),
                a=first.label,
                b=second.label,
                share=asked.share,
                includes_api=asked.includes_api,
            )
    except IntegrityError as error:
        raise ConflictError("Another experiment runs: stop it first.") from error
    return stored


def _check(asked: ExperimentRequest, name: str) -> None:
    now = timezone.now()
    if not name:
        raise InvalidRequestError("Give the experiment a name.")
    if not settings.CORECUBE_KEEP_QUERY_TEXT:
        raise InvalidRequestError("Without stored query texts no use is stored, so there is nothing to compare.")
    if not 1 <= asked.share <= 100:  # noqa: PLR2004 -- percent
        raise InvalidRequestError("The share must be between 1 and 100 percent.")
    if asked.ends_at is None and asked.max_questions is None:
        raise InvalidRequestError("Set an end: a date, or a number of questions.")
    if asked.ends_at is not None and not now < asked.ends_at <= now + timedelta(days=MAX_DAYS):
        raise InvalidRequestError(f"The end must be within the next {MAX_DAYS} days.")
    if asked.max_questions is not None and not 1 <= asked.max_questions <= MAX_QUESTIONS:
        raise InvalidRequestError(f"The number of questions must be between 1 and {MAX_QUESTIONS:,}.")


def _contender(name: str, number: int | None) -> Contender:
    preset = preset_named(name)
    if number is None:
        live = configuration_of(preset)
        return Contender(name, live.number, preset.changes(live.config))
    if number == SHIPPED:
        return Contender(name, SHIPPED, {})
    unknown = UnknownVersionError(f"The preset {name} has no version {number}.")
    found = first_or(unknown, PresetVersion.objects.filter(preset=name, number=number))
    return Contender(name, number, found.values)


def stop(experiment: Experiment, *, actor: Principal) -> None:
    """End an experiment; its report stays. Nothing happens to one that has ended."""
    with transaction.atomic():
        running = Experiment.objects.filter(pk=experiment.pk, is_running=True)
        if running.update(is_running=False, ended_at=timezone.now()):
            audit.record("experiment.stopped", actor=actor.user, subject=experiment.name, experiment=str(experiment.pk))


def newest() -> QuerySet[Experiment]:
    """Return the newest experiments, the newest first."""
    end_finished()
    return Experiment.objects.all()[:_MAX_LISTED]


def experiment_named(experiment_id: UUID) -> Experiment:
    """Return an experiment; raise NotFoundError for an unknown one."""
    end_finished()
    return first_or(NotFoundError("There is no experiment with that id."), Experiment.objects.filter(pk=experiment_id))


def report_of(experiment: Experiment) -> Report:
    """Return what use says, of the questions that the query log still has."""
    used: dict[UUID, dict[_Passage, int]] = defaultdict(dict)
    rows = Impression.objects.filter(USED, record__experiment=experiment).values_list(
        "record_id", "document_id", "content_hash", "opened", "copied", "rating"
    )
    for record, document, content_hash, opened, copied, rating in rows.iterator():
        used[record][document, content_hash] = use_value(opened=opened, copied=copied, rating=rating)
    counted = experiment.records.exclude(trace__interleaving__teams=[])
    teams = counted.filter(pk__in=used).values_list("pk", "trace__interleaving__teams")
    credit = [_credit(used[record], _by_passage(found)) for record, found in teams.iterator()]
    logged = experiment.records.count()
    return Report(experiment, logged, logged - counted.count(), Preference.of(it for it in credit if it))


def _by_passage(teams: list[tuple[str, str, str | None]]) -> dict[_Passage, str | None]:
    return {(UUID(chunk.rpartition(":")[0]), content_hash): team for chunk, content_hash, team in reversed(teams)}


def _credit(used: Mapping[_Passage, int], teams: Mapping[_Passage, str | None]) -> tuple[int, int] | None:
    """Return the credit of both teams for one question; None where nothing of either team was used."""
    values = {team: [value for it, value in used.items() if teams.get(it) == team] for team in Team}
    return (sum(values[Team.A]), sum(values[Team.B])) if any(values.values()) else None
