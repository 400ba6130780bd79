"""Pages of sweeps."""

import pytest

from retrieval.evaluation.question_sets import save_case
from retrieval.evaluation.sweeps import detectable_gain, halves, run_waiting
from retrieval.models import PresetVersion, QuestionSet, Sweep
from tests.questions import tuning_questions

pytestmark = pytest.mark.usefixtures("unhurried")

NEW = "/sweeps/new/"
FORM = {
    "set": "tuning-questions",
    "preset": "corecube",
    "method": "grid",
    "name": ["blend.dense", "blend.fulltext", ""],
    "tried": ["0, 0.6", "0, 0.3", ""],
    "measure": "ndcg",
    "cutoff": "10",
    "max_p95_ms": "",
    "trials": "16",
}


def page(response):
    return response.content.decode()


@pytest.fixture
def alice(browse, world):
    tuning_questions(world)
    version = PresetVersion.objects.get(preset="corecube")
    version.values |= {"blend.dense": 0.0, "blend.fulltext": 0.0, "blend.freshness": 1.0}
    version.save()
    return browse("alice")


@pytest.fixture
def swept(alice):
    alice.post(NEW, FORM)
    run_waiting()
    return f"/sweeps/{Sweep.objects.get().pk}/"


def test_the_form_says_what_so_many_cases_can_tell_from_chance(alice, world):
    tuning, held_out = halves(QuestionSet.objects.get())
    shown = page(alice.get(NEW, {"set": "tuning-questions"}))
    assert "Few cases." in shown
    assert f"{tuning} answerable cases choose the configuration and {held_out} measure its gain" in shown
    for number in range(60):
        save_case(QuestionSet.objects.get(), f"question {number}", actor=world.alice)
    assert "Few cases." not in page(alice.get(NEW, {"set": "tuning-questions"}))


def test_four_times_the_cases_tell_half_the_gain():
    # 2.8 standard errors: 2.8 x 0.18 / 5 = 0.1008.
    assert detectable_gain(25) == pytest.approx(0.1008)
    assert detectable_gain(100) == pytest.approx(0.0504)


def test_a_sweep_is_started_followed_and_its_best_drafted(alice, htmx):
    assert "Press New sweep." in page(alice.get("/sweeps/"))
    assert "Blend: Dense (0.0 to 1.0, live 0.0) blend.dense" in page(alice.get(NEW, {"set": "tuning-questions"}))
    address = alice.post(NEW, FORM).headers["Location"]
    waiting = page(alice.get(address))
    assert "queued: 0 of 24 searches" in waiting.lower()
    assert f'hx-get="{address}"' in waiting
    run_waiting()
    assert alice.get(address, headers=htmx).headers["HX-Refresh"] == "true"
    shown = alice.get(address)
    assert "Held-out difference: +" in page(shown)
    assert [chart.id for chart in shown.context["charts"]] == ["sweep-map", "sweep-pareto"]
    assert "nDCG@10 [" in page(alice.get("/sweeps/"))
    drafted = alice.post(f"{address}change/", {"action": "draft", "replaces": ""}, follow=True)
    assert "saved as the draft" in page(drafted)
    assert PresetVersion.objects.get(status="draft").note.startswith("Sweep on Tuning questions")
    again = alice.post(f"{address}change/", {"action": "draft", "replaces": ""}, follow=True)
    assert "Another user has changed the draft" in page(again)
    assert "Replace the draft, version 2" in page(alice.get(address))


def test_a_random_search_takes_bounds(alice):
    sent = FORM | {"method": "random", "tried": ["0.1 to 0.9", "0.1 to 0.9", ""], "trials": "3", "max_p95_ms": "900"}
    alice.post(NEW, sent)
    sweep = Sweep.objects.get()
    assert sweep.ranges[0] == {"name": "blend.dense", "low": 0.1, "high": 0.9}
    assert (sweep.trials.count(), sweep.max_p95_ms) == (4, 900.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tried": ["", "0.3", ""]},
        {"tried": ["one", "0.3", ""]},
        {"tried": ["7", "0.3", ""]},
        {"name": ["", "", ""]},
        {"method": "guess"},
        {"method": "random"},
        {"cutoff": "99"},
        {"max_p95_ms": "fast"},
        {"max_p95_ms": "inf"},
    ],
    ids=str,
)
def test_a_wrong_form_is_shown_again_with_what_was_entered(alice, wrong):
    response = alice.post(NEW, FORM | wrong)
    assert response.status_code == 422
    assert "The sweep was not started" in page(response)
    assert '0.3" maxlength' in page(response)
    assert not Sweep.objects.exists()


def test_a_sweep_is_cancelled_and_deleted(alice):
    address = alice.post(NEW, FORM).headers["Location"]
    assert "Cancelled after 0 of 24" in page(alice.post(f"{address}change/", {"action": "cancel"}, follow=True))
    alice.post(f"{address}change/", {"action": "delete"})
    assert not Sweep.objects.exists()
    assert alice.get(address).status_code == 404


def test_trials_are_read_like_runs_but_belong_to_the_sweep(alice, swept):
    trial = Sweep.objects.get().trials.first()
    shown = page(alice.get(f"/runs/{trial.run_id}/"))
    assert "Each case" in shown
    assert "Delete this run" not in shown
    assert str(trial.run_id) not in page(alice.get("/judgments/tuning-questions/"))


def test_who_may_not_see_the_whole_scope_sees_nothing(browse, alice, swept, world):
    bob = browse("bob")
    assert {bob.get(path).status_code for path in ("/sweeps/", NEW, swept)} == {404}
    world.bob.is_staff = True
    world.bob.save()
    assert bob.get(swept).status_code == 404
    assert bob.post(f"{swept}change/", {"action": "draft"}).status_code == 404
    assert "No sweeps yet" in page(bob.get("/sweeps/"))


@pytest.mark.parametrize("query", [{}, {"set": "no-such"}, {"set": "tuning-questions", "preset": "corecube@reference"}])
def test_a_sweep_of_nothing_is_not_found(alice, query):
    assert alice.get(NEW, query).status_code == 404
