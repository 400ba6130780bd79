"""Gates: what a promotion does on guarding question sets decides whether it happens."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from corecube.errors import InvalidRequestError, NotFoundError
from corecube.models import AuditEvent
from retrieval.admin.preset_versions import promote, roll_back, save_draft
from retrieval.errors import GateError, UnknownVersionError, VersionConflictError
from retrieval.evaluation import gates, runs
from retrieval.evaluation.gates import Verdict
from retrieval.evaluation.question_sets import save_case, set_named
from retrieval.models import EvaluationRun, PresetVersion
from retrieval.presets.catalog import preset_named
from retrieval.ranking.measures import Objective
from tests.questions import ROLLBACK, judge_passage

pytestmark = pytest.mark.usefixtures("unhurried")

CORECUBE = preset_named("corecube")
#: No passage reaches this score, so that nothing is found.
HARMFUL = {"floor.blend": 1.0}
HARMLESS = {"assemble.budget_tokens": 3000}


@pytest.fixture
def alice(world):
    return world.principal("alice")


@pytest.fixture
def gate(questions, alice):
    return gates.set_gate(questions, objective=Objective(), max_loss=0.01, actor=alice)


@pytest.fixture
def draft(world):
    """Return a function that saves a draft."""

    def saved(values):
        standing = PresetVersion.objects.filter(preset="corecube", status="draft").first()
        live = PresetVersion.objects.get(preset="corecube", status="live").values
        replaces = standing.fingerprint if standing else ""
        return save_draft(preset=CORECUBE, values=live | values, note="", actor=world.alice, replaces=replaces)

    return saved


def measured(version, principal):
    gates.queue_missing(CORECUBE, version, principal)
    runs.run_waiting()
    (result,) = gates.checked(CORECUBE, version, principal)
    return result


def test_a_draft_that_loses_is_refused_with_the_figures(gate, draft, alice):
    version = draft(HARMFUL)
    (before,) = gates.checked(CORECUBE, version, alice)
    assert (before.verdict, before.sentence) == (Verdict.UNMEASURED, "not measured")
    result = measured(version, alice)
    assert result.verdict is Verdict.BELOW
    assert (result.difference.mean, result.difference.losses) == (pytest.approx(-1.0, abs=0.1), 2)
    assert result.sentence.endswith("2 of 2 queries worse")
    with pytest.raises(GateError, match=r"Release questions: -.*nDCG@10 .*allowed loss 0.01"):
        promote(preset=CORECUBE, number=version.number, actor=alice.user)
    assert PresetVersion.objects.get(preset="corecube", status="live").number == 1


def test_a_reason_overrides_a_gate_and_is_audited_with_the_figures(gate, draft, alice):
    version = draft(HARMFUL)
    result = measured(version, alice)
    promote(preset=CORECUBE, number=version.number, actor=alice.user, reason=" The law \n wants it. ")
    event = AuditEvent.objects.get(action="preset.promoted")
    assert (event.actor, event.details["override_reason"]) == (alice.user, "The law \n wants it.")
    assert event.details["gates"] == [result.as_json()]
    assert event.details["gates"][0]["mean"] == result.difference.mean


def test_a_blank_reason_and_missing_figures_override_nothing(gate, draft, alice):
    version = draft(HARMLESS)
    with pytest.raises(GateError, match="not measured"):
        promote(preset=CORECUBE, number=version.number, actor=alice.user, reason=" \n")


def test_a_draft_that_loses_nothing_is_promoted_and_rolled_back(gate, draft, alice):
    version = draft(HARMLESS)
    assert measured(version, alice).verdict is Verdict.PASSED
    promote(preset=CORECUBE, number=version.number, actor=alice.user, reason="not needed")
    assert "override_reason" not in AuditEvent.objects.get(action="preset.promoted").details
    with pytest.raises(VersionConflictError):
        roll_back(preset=CORECUBE, actor=alice.user, live=1)
    assert roll_back(preset=CORECUBE, actor=alice.user, live=version.number).number == 1
    assert PresetVersion.objects.get(preset="corecube", status="live").number == 1
    assert AuditEvent.objects.get(action="preset.rolled_back").details["retired"] == version.number
    with pytest.raises(UnknownVersionError, match="no version to roll back"):
        roll_back(preset=CORECUBE, actor=alice.user)


def test_the_first_version_is_rolled_back_to_the_shipped_defaults(world):
    PresetVersion.objects.all().delete()
    save_draft(preset=CORECUBE, values={"blend.dense": 0.5}, note="", actor=world.alice)
    promote(preset=CORECUBE, number=1, actor=world.alice)
    assert roll_back(preset=CORECUBE, actor=world.alice) is None
    assert not PresetVersion.objects.filter(status="live").exists()


def test_runs_are_used_again_until_something_has_changed(gate, draft, alice, world, questions):
    version = draft(HARMLESS)
    measured(version, alice)
    assert EvaluationRun.objects.count() == 2
    assert gates.queue_missing(CORECUBE, version, alice) == []
    assert len(gates.queue_missing(CORECUBE, version, alice, again=True)) == 2
    EvaluationRun.objects.filter(status="queued").delete()

    def verdict():
        return gates.checked(CORECUBE, version, alice)[0].verdict

    assert verdict() is Verdict.PASSED
    kept = EvaluationRun.objects.values_list("pk", "started_at")
    for changed in ({"release": "0.1"}, {"index": "other"}, {"started_at": timezone.now() - timedelta(days=2)}):
        before = {pk: EvaluationRun.objects.values(*changed).get(pk=pk) for pk, _ in kept}
        EvaluationRun.objects.update(**changed)
        assert verdict() is Verdict.UNMEASURED
        for pk, values in before.items():
            EvaluationRun.objects.filter(pk=pk).update(**values)
    judge_passage(world, ROLLBACK, "zanzibar", 2)
    assert verdict() is Verdict.UNMEASURED
    measured(version, alice)
    assert verdict() is Verdict.PASSED
    save_case(questions, "one more", actor=world.alice)
    assert verdict() is Verdict.UNMEASURED


def test_a_run_of_the_draft_that_an_admin_started_counts(gate, draft, alice, questions):
    version = draft(HARMLESS)
    runs.run_now(questions, runs.RunRequest("corecube", is_draft=True), principal=alice)
    runs.run_now(questions, runs.RunRequest("corecube"), principal=alice)
    assert gates.checked(CORECUBE, version, alice)[0].verdict is Verdict.PASSED
    assert gates.queue_missing(CORECUBE, version, alice) == []


def test_runs_in_another_scope_do_not_count(gate, draft, alice, world):
    version = draft(HARMLESS)
    measured(version, alice)
    world.bob.is_staff = True
    world.bob.save()
    bob = world.principal("bob")
    assert gates.checked(CORECUBE, version, bob)[0].verdict is Verdict.UNMEASURED
    measured(version, bob)
    assert EvaluationRun.objects.count() == 4
    assert gates.checked(CORECUBE, version, alice)[0].live.user == world.alice


def test_a_set_without_judgments_passes_nothing(draft, alice, world):
    unjudged = set_named("Unjudged", actor=world.alice)
    save_case(unjudged, ROLLBACK, actor=world.alice)
    gates.set_gate(unjudged, objective=Objective(), max_loss=1.0, actor=alice)
    assert measured(draft(HARMLESS), alice).verdict is Verdict.UNJUDGED


def test_a_presets_own_gate_replaces_that_of_every_preset(gate, questions, alice):
    own = gates.set_gate(questions, preset="corecube", objective=Objective("recall", 5), max_loss=0.5, actor=alice)
    assert gates.gates_of(CORECUBE) == [own]
    assert gates.gates_of(preset_named("helix")) == [gate]
    assert own.max_loss == 0.5
    gates.remove_gate(questions, preset="corecube", actor=alice)
    assert gates.gates_of(CORECUBE) == [gate]
    with pytest.raises(NotFoundError):
        gates.remove_gate(questions, preset="corecube", actor=alice)


@pytest.mark.parametrize(
    "asked",
    [
        {"preset": "corecube@reference"},
        {"preset": "nope"},
        {"objective": Objective("judged", 10)},
        {"objective": Objective("ndcg", 21)},
        {"max_loss": 2.0},
    ],
    ids=str,
)
def test_what_guards_nothing_is_no_gate(questions, alice, asked):
    with pytest.raises(InvalidRequestError):
        gates.set_gate(questions, **{"objective": Objective(), "max_loss": 0.01, "actor": alice} | asked)


@pytest.mark.parametrize(("values", "code"), [(HARMLESS, 0), (HARMFUL, 1)], ids=["harmless", "harmful"])
def test_the_command_ends_with_a_code_for_ci(gate, draft, values, code):
    draft(values)
    out, ended = StringIO(), 0
    try:
        call_command("evaluate", "--gate", "--json", stdout=out)
    except CommandError as error:
        ended = error.returncode
    found = json.loads(out.getvalue())
    assert (ended, found["passed"], len(found["gates"])) == (code, not code, 1)


def test_the_command_says_that_there_is_nothing_to_check(world, draft):
    with pytest.raises(CommandError, match="no draft") as nothing:
        call_command("evaluate", "--gate")
    draft(HARMLESS)
    with pytest.raises(CommandError, match="no gate") as unguarded:
        call_command("evaluate", "--gate")
    assert {nothing.value.returncode, unguarded.value.returncode} == {2}
