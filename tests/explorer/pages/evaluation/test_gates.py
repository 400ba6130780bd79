"""Gates on the pages: set on a question set, shown and obeyed where a version is promoted, and rolled back."""

import pytest

from corecube.models import AuditEvent
from retrieval.admin.preset_versions import save_draft
from retrieval.evaluation.runs import run_waiting
from retrieval.models import EvaluationRun, Gate, PresetVersion
from retrieval.presets.catalog import preset_named

pytestmark = pytest.mark.usefixtures("unhurried")

SET = "/judgments/release-questions/"
PROMOTE = "/presets/corecube/promote/2/"
GATE = {"preset": "", "measure": "ndcg", "cutoff": "10", "max_loss": "0.01"}
HARMFUL, HARMLESS = {"floor.blend": 1.0}, {"assemble.budget_tokens": 3000}


def page(response):
    return response.content.decode()


@pytest.fixture
def alice(browse, questions):
    client = browse("alice")
    client.post(f"{SET}gates/", GATE)
    return client


@pytest.fixture
def draft(world):
    return lambda values: save_draft(preset=preset_named("corecube"), values=values, note="", actor=world.alice)


def promoted(client, **sent):
    shown = client.get(PROMOTE).context
    return client.post(PROMOTE, {"live": shown["live"], "fingerprint": shown["fingerprint"]} | sent, follow=True)


def live():
    return PresetVersion.objects.get(preset="corecube", status="live").number


def test_a_gate_is_set_and_removed(alice, world):
    gate = Gate.objects.get()
    assert (gate.question_set.slug, gate.preset, gate.measure, gate.cutoff, gate.max_loss) == (
        "release-questions",
        "",
        "ndcg",
        10,
        0.01,
    )
    assert "every preset" in page(alice.get(SET))
    for wrong in ({"measure": "x"}, {"cutoff": "0"}, {"cutoff": "x"}, {"max_loss": "x"}, {"max_loss": "nan"}):
        assert 'class="notice is-bad"' in page(alice.post(f"{SET}gates/", GATE | wrong, follow=True))
    alice.post(f"{SET}gates/", {"preset": "", "action": "remove"})
    assert not Gate.objects.exists()


def test_a_promotion_measures_shows_and_obeys_the_gate(alice, draft, htmx):
    draft(HARMFUL)
    before = alice.get(PROMOTE)
    assert before.context["gates_need_runs"]
    assert "Promote anyway" in page(before)
    alice.post(f"{PROMOTE}measure/")
    waiting = alice.get(f"{PROMOTE}gates/", headers=htmx)
    assert "HX-Refresh" not in waiting.headers
    assert f'hx-get="{PROMOTE}gates/"' in page(waiting)
    assert EvaluationRun.objects.filter(trigger="gate").count() == 2
    run_waiting()
    assert alice.get(f"{PROMOTE}gates/", headers=htmx).headers["HX-Refresh"] == "true"
    shown = page(alice.get(PROMOTE))
    assert "2 of 2 queries worse" in shown
    assert "/runs/compare/?a=" in shown
    refused = promoted(alice)
    assert refused.redirect_chain[0][0] == PROMOTE
    assert "A gate is not passed" in page(refused)
    assert live() == 1
    promoted(alice, reason="We accept it.")
    assert live() == 2
    assert AuditEvent.objects.get(action="preset.promoted").details["override_reason"] == "We accept it."


def test_a_passed_version_is_promoted_and_rolled_back_with_one_click(alice, draft):
    draft(HARMLESS)
    alice.post(f"{PROMOTE}measure/")
    run_waiting()
    shown = page(alice.get(PROMOTE))
    assert "passed" in shown
    assert "Promote anyway" not in shown
    assert "Roll back" not in page(alice.get("/presets/corecube/"))
    promoted(alice)
    assert live() == 2
    assert "Roll back to version 1" in page(alice.get("/presets/corecube/"))
    assert 'class="notice is-bad"' in page(alice.post("/presets/corecube/rollback/", {"live": "1"}, follow=True))
    assert "all searches use version 1 again" in page(
        alice.post("/presets/corecube/rollback/", {"live": "2"}, follow=True)
    )
    assert live() == 1


def test_measuring_again_makes_new_runs(alice, draft):
    draft(HARMLESS)
    for action in ("", "", "again"):
        alice.post(f"{PROMOTE}measure/", {"action": action})
        run_waiting()
    assert EvaluationRun.objects.count() == 4


def test_others_may_not(browse, alice, draft):
    draft(HARMLESS)
    bob = browse("bob")
    for path in (f"{SET}gates/", f"{PROMOTE}measure/", "/presets/corecube/rollback/"):
        assert bob.post(path).status_code == 404
    assert bob.get(f"{PROMOTE}gates/").status_code == 404
    for path in ("nope/rollback/", "corecube@reference/rollback/", "corecube/promote/9/measure/"):
        assert alice.post(f"/presets/{path}").status_code == 404
