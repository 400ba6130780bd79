"""Grades from use: within the reader's scope, of enough people, and counted only in runs that say so."""

import pytest

from corecube.access import Principal, scope_for
from corecube.models import ApiKey
from retrieval.evaluation import gates, runs
from retrieval.evaluation.judging import agreement, rated_passages
from retrieval.evaluation.use_grades import UseGrade, UseGrades
from retrieval.models import EvaluationRun, Impression, Judgment, SearchRecord
from retrieval.presets.catalog import preset_named
from retrieval.ranking.agreement import Agreement
from retrieval.ranking.measures import Objective
from tests.questions import ROLLBACK, TANGERINE, judge_passage
from tests.use import passage, shown

pytestmark = pytest.mark.usefixtures("unhurried")
QUERY = ROLLBACK.casefold()


def of(person, *queries):
    return UseGrades.read(queries).within(scope_for(Principal(person)), queries)


def used(query, *words, people=5, **use):
    for number in range(people):
        shown(f"reader {number}", query, *words, **use)


def test_uses_give_grades_to_what_was_shown(world):
    used(QUERY, "deployctl", "zanzibar", opened=True, copied=True)
    expected = {(QUERY, passage("deployctl")): UseGrade(2, is_rated=False)}
    assert of(world.alice, f"  {ROLLBACK}") == {**expected, (QUERY, passage("zanzibar")): UseGrade(0, is_rated=False)}
    assert of(world.alice, "another") == {}
    # The latest thumb counts before the copy.
    Impression.objects.filter(position=1).update(rating=1)
    assert of(world.alice, QUERY)[QUERY, passage("deployctl")] == UseGrade(3, is_rated=True)


@pytest.mark.parametrize("readers", [1, 2])
def test_fewer_than_three_people_give_none(world, readers):
    for _ in range(5):
        used(QUERY, "deployctl", people=readers, opened=True)
    assert of(world.alice, QUERY) == {}
    # Whose account was deleted is nobody.
    shown("gone", QUERY, "deployctl", opened=True).user.delete()
    assert of(world.alice, QUERY) == {}
    for number in range(3 - readers):
        shown(f"new {number}", QUERY, "deployctl", opened=True)
    assert of(world.alice, QUERY) == {(QUERY, passage("deployctl")): UseGrade(1, is_rated=False)}


def test_four_showings_give_none(world):
    used(QUERY, "deployctl", people=4, opened=True)
    assert of(world.alice, QUERY) == {}


def test_uses_through_the_api_give_none(world):
    used(QUERY, "deployctl", opened=True)
    key, _ = ApiKey.issue(user=world.alice, name="test")
    SearchRecord.objects.update(key=key)
    assert of(world.alice, QUERY) == {}


def test_passages_outside_the_scope_have_none(world):
    used(TANGERINE, "tangerine", "deployctl", opened=True)
    assert {it for _, it in of(world.alice, TANGERINE)} == {passage("tangerine"), passage("deployctl")}
    assert {it for _, it in of(world.bob, TANGERINE)} == {passage("deployctl")}
    assert of(world.charlie, TANGERINE) == {}


def test_a_text_that_changed_has_none(world):
    used(QUERY, "deployctl", opened=True)
    Impression.objects.update(content_hash="f" * 64)
    assert of(world.alice, QUERY) == {}


def test_low_places_weigh_more_where_they_are_examined_less(world):
    for number in range(5):
        shown(f"reader {number}", QUERY, "deployctl", "zanzibar", opened=True)
    # Two of five opened the second passage too: 0.4 at the first place, but people look at the second half as often.
    Impression.objects.filter(position=2, record__user__username__in=("reader 0", "reader 1")).update(opened=True)
    assert of(world.alice, QUERY)[QUERY, passage("zanzibar")].grade == 1
    Impression.objects.filter(position=2).update(position=1)
    assert of(world.alice, QUERY)[QUERY, passage("zanzibar")].grade == 0


def measured(questions, world, **asked):
    return runs.run_now(questions, runs.RunRequest("corecube", **asked), principal=world.principal("alice"))


def cases(run):
    return {it.query: it for it in runs.result_of(run).cases}


def test_they_count_only_in_runs_that_say_so_and_after_people(questions, world):
    used(QUERY, "Q-4711", "deployctl", opened=True, copied=True)
    plain = cases(measured(questions, world))
    found = cases(measured(questions, world, counts="use"))
    # Alice gave deployctl a 3, where use says 0.
    assert found[ROLLBACK].grades == {**plain[ROLLBACK].grades, passage("Q-4711"): 2}
    assert found[ROLLBACK].grades[passage("deployctl")] == 3
    assert (found[ROLLBACK].other_grades, plain[ROLLBACK].other_grades) == (1, 0)
    assert found[ROLLBACK].measures.ndcg < plain[ROLLBACK].measures.ndcg
    assert found[TANGERINE].grades == plain[TANGERINE].grades
    assert Judgment.objects.exclude(source="person").count() == 0


def test_a_run_with_the_access_of_another_user_counts_what_that_user_sees(questions, world):
    used(QUERY, "tangerine", "deployctl", opened=True)
    questions.cases.update(user=world.bob)
    (case,) = [it for it in runs.result_of(measured(questions, world, counts="use")).cases if it.query == ROLLBACK]
    assert passage("tangerine") not in case.grades
    assert case.other_grades == 0


def test_a_gate_takes_no_run_that_counts_other_grades(questions, world):
    alice = world.principal("alice")
    gates.set_gate(questions, objective=Objective(), max_loss=0.01, actor=alice)
    preset = preset_named("corecube")
    for counts in ("use", "model"):
        measured(questions, world, counts=counts)
    missing = [it.name for it in gates.queue_missing(preset, None, alice)]
    assert missing == ["Gate: version 1", "Gate: shipped defaults"]
    EvaluationRun.objects.filter(status="queued").delete()
    measured(questions, world)
    assert [it.name for it in gates.queue_missing(preset, None, alice)] == missing[1:]


def test_the_set_shows_how_well_they_agree_with_people(questions, world):
    scope = scope_for(world.principal("alice"))
    assert agreement(rated_passages(questions, scope)).use == Agreement(0, None)
    used(QUERY, "deployctl", "zanzibar", opened=True, copied=True)
    # People say 3 and 1, use 2 and 0: squared distances 1 and 1, where chance gives 1, 1, 9 and 1.
    assert agreement(rated_passages(questions, scope)).use == Agreement(2, pytest.approx(1 - 1 / 3))
    # A rated passage is left out, as its thumb is a judgment too.
    Impression.objects.filter(position=2).update(rating=-1)
    assert agreement(rated_passages(questions, scope)).use.passages == 1
    judge_passage(world, TANGERINE, "Q-4711", 1)
    assert agreement(rated_passages(questions, scope)).use.passages == 1
