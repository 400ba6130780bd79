"""Schedules: runs of the live version when something may have changed, their trend, and the alarm."""

from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.errors import InvalidRequestError
from retrieval.evaluation import runs, schedules
from retrieval.models import EvaluationRun, PresetVersion, Schedule, Sync
from retrieval.ranking.measures import Objective

pytestmark = pytest.mark.usefixtures("unhurried")

TEN_AM = timezone.localtime().replace(hour=10, minute=0, second=0, microsecond=0) + timedelta(days=1)


@pytest.fixture
def alice(world):
    return world.principal("alice")


@pytest.fixture
def scheduled(questions, alice):
    """Return a function that sets a schedule, made before everything else."""

    def stored(**when):
        times = {"after_syncs": False, "nightly": False, "after_upgrades": False, "min_mean": None} | when
        found = schedules.set_schedule(questions, preset="corecube", objective=Objective(), actor=alice, **times)
        Schedule.objects.update(created_at=TEN_AM - timedelta(hours=1))
        return found

    return stored


def due(now):
    """Queue what is due, measure it, and return why it was."""
    schedules.queue_due(now)
    found = [run.trigger for run in EvaluationRun.objects.filter(status="queued")]
    EvaluationRun.objects.filter(status="queued").update(created_at=now)
    runs.run_waiting()
    return found


def test_nights_are_measured_once(scheduled):
    scheduled(nightly=True)
    assert due(TEN_AM) == []
    assert due(TEN_AM.replace(hour=1) + timedelta(days=1)) == []
    assert due(TEN_AM.replace(hour=2) + timedelta(days=1)) == ["night"]
    assert due(TEN_AM + timedelta(days=1)) == []
    # The worker was off for a night.
    assert due(TEN_AM + timedelta(days=3)) == ["night"]


def test_a_night_that_waits_is_not_queued_twice(scheduled):
    scheduled(nightly=True)
    tomorrow = TEN_AM + timedelta(days=1)
    assert schedules.queue_due(tomorrow) == 1
    assert schedules.queue_due(tomorrow) == 0


def test_syncs_that_changed_something_are_measured_at_most_hourly(scheduled, world):
    scheduled(after_syncs=True)
    Sync.objects.all().delete()

    def synced(at, **counts):
        Sync.objects.create(connection=world.runbooks, status="done", finished_at=at, **counts)

    later = TEN_AM + timedelta(minutes=10)
    synced(TEN_AM, unchanged=3)
    assert due(later) == []
    synced(TEN_AM, changed=1)
    assert due(later) == ["sync"]
    synced(later + timedelta(minutes=5), deleted=1)
    assert due(later + timedelta(minutes=59)) == []
    assert due(later + timedelta(minutes=61)) == ["sync"]
    assert due(later + timedelta(minutes=200)) == []


def test_syncs_outside_the_scope_start_nothing(questions, world):
    world.bob.is_staff = True
    world.bob.save()
    schedules.set_schedule(
        questions,
        preset="corecube",
        objective=Objective(),
        actor=world.principal("bob"),
        after_syncs=True,
        nightly=False,
        after_upgrades=False,
        min_mean=None,
    )
    Schedule.objects.update(created_at=TEN_AM - timedelta(hours=1))
    Sync.objects.all().delete()
    Sync.objects.create(connection=world.vault, status="done", finished_at=TEN_AM, added=1)
    assert due(TEN_AM + timedelta(minutes=1)) == []


def test_an_upgrade_is_measured_once(scheduled, monkeypatch):
    scheduled(after_upgrades=True, nightly=True)
    assert due(TEN_AM) == []
    assert due(TEN_AM + timedelta(days=1)) == ["night"]
    monkeypatch.setattr(schedules, "VERSION", "99.0")
    monkeypatch.setattr(runs, "VERSION", "99.0")
    assert due(TEN_AM + timedelta(days=1, hours=2)) == ["upgrade"]
    assert due(TEN_AM + timedelta(days=1, hours=4)) == []


def test_the_trend_alarms_below_the_minimum_and_ends_when_it_rises(scheduled, alice, questions):
    scheduled(nightly=True, min_mean=0.5)
    assert schedules.alarms(alice) == []
    due(TEN_AM + timedelta(days=1))
    assert schedules.alarms(alice) == []
    version = PresetVersion.objects.get(preset="corecube")
    version.values |= {"floor.blend": 1.0}
    version.save()
    due(TEN_AM + timedelta(days=2))
    (trend,) = schedules.trends(questions, alice)
    assert [round(it.mean, 1) for it in trend.points] == [1.0, 0.0]
    assert trend.alarm == "nDCG@10 of corecube on Release questions is 0.000, below 0.5."
    assert [it.alarm for it in schedules.alarms(alice)] == [trend.alarm]
    version.values.pop("floor.blend")
    version.save()
    due(TEN_AM + timedelta(days=3))
    assert schedules.alarms(alice) == []


def test_runs_of_a_wider_scope_are_neither_in_the_trend_nor_alarm(scheduled, world, questions):
    scheduled(nightly=True, min_mean=1.0)
    due(TEN_AM + timedelta(days=1))
    EvaluationRun.objects.get().results.update(ranking=[])
    assert schedules.alarms(world.principal("alice"))
    world.bob.is_staff = True
    world.bob.save()
    bob = world.principal("bob")
    assert schedules.alarms(bob) == []
    assert schedules.trends(questions, bob)[0].points == []


def test_no_time_removes_the_schedule(scheduled):
    assert scheduled(nightly=True).nightly
    assert scheduled() is None
    assert not Schedule.objects.exists()


def test_a_run_that_cannot_be_queued_is_tried_again(scheduled, questions, world):
    scheduled(nightly=True)
    cases = list(questions.cases.all())
    questions.cases.all().delete()
    assert schedules.queue_due(TEN_AM + timedelta(days=1)) == 0
    cases[0].save(force_insert=True)
    assert schedules.queue_due(TEN_AM + timedelta(days=1)) == 1


@pytest.mark.parametrize("wrong", [{"preset": "no-such"}, {"objective": Objective("x")}, {"min_mean": 1.5}], ids=str)
def test_what_measures_nothing_is_no_schedule(questions, alice, wrong):
    asked = {"preset": "corecube", "objective": Objective(), "actor": alice, "min_mean": None}
    with pytest.raises(InvalidRequestError):
        schedules.set_schedule(questions, after_syncs=True, nightly=False, after_upgrades=False, **asked | wrong)


def test_a_schedule_with_answers_has_their_measures_in_its_trend(questions, scheduled, alice):
    scheduled(nightly=True)
    due(TEN_AM + timedelta(days=1))
    scheduled(nightly=True, has_answers=True)
    due(TEN_AM + timedelta(days=2))
    (trend,) = schedules.trends(questions, alice)
    assert [it.answers and it.answers.not_asserted for it in trend.points] == [None, 1.0]
