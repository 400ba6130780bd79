"""Schedules, trend and alarm on the pages."""

from datetime import timedelta

import pytest
from django.utils import timezone

from retrieval.evaluation.runs import run_waiting
from retrieval.evaluation.schedules import queue_due
from retrieval.models import EvaluationRun, Schedule

pytestmark = pytest.mark.usefixtures("unhurried")

SET = "/judgments/release-questions/"
FORM = {"preset": "corecube", "measure": "ndcg", "cutoff": "10", "min_mean": "0.99", "nightly": "on"}


def page(response):
    return response.content.decode()


def test_a_schedule_is_saved_its_trend_and_alarm_are_shown_and_it_is_removed(browse, questions):
    alice = browse("alice")
    assert "The schedule was saved." in page(alice.post(f"{SET}schedules/", FORM, follow=True))
    queue_due(timezone.localtime() + timedelta(days=2))
    run_waiting()
    shown = page(alice.get(SET))
    assert 'id="chart-trend-' in shown
    assert "falls below" not in shown
    EvaluationRun.objects.get().results.update(ranking=[])
    assert "nDCG@10 of General search on Release questions is 0.000, below 0.99." in page(alice.get(SET))
    health = page(alice.get("/health/"))
    assert "nDCG@10 of General search on Release questions is 0.000, below 0.99." in health
    assert f'href="{SET}"' in health
    never = {name: value for name, value in FORM.items() if name != "nightly"}
    assert "The schedule was removed." in page(alice.post(f"{SET}schedules/", never, follow=True))
    assert not Schedule.objects.exists()
    assert "below 0.99" not in page(alice.get("/health/"))


@pytest.mark.parametrize(
    "wrong", [{"preset": "x"}, {"measure": "x"}, {"cutoff": ""}, {"min_mean": "2"}, {"min_mean": "x"}]
)
def test_a_wrong_schedule_is_not_saved(browse, questions, wrong):
    response = browse("alice").post(f"{SET}schedules/", FORM | wrong, follow=True)
    assert 'class="notice is-bad"' in page(response)
    assert not Schedule.objects.exists()


def test_others_may_not(browse, questions):
    assert browse("bob").post(f"{SET}schedules/", FORM).status_code == 404
