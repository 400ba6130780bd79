"""A language model behind real HTTP grades what nobody has judged."""

import json

import pytest

from corecube.access import scope_for
from retrieval.evaluation import runs
from retrieval.evaluation.judging import agreement, rated_passages
from retrieval.evaluation.model_grades import grade_of
from retrieval.evaluation.question_sets import save_case, set_named
from retrieval.evaluation.runs import RunRequest
from retrieval.models import Chunk, Judgment, LanguageModel, RoutingRule
from retrieval.ranking.agreement import Agreement
from retrieval.records.judgments import PassageId, grades_of, judge
from retrieval.search.prepare import kept_relevance
from tests.fake_llm import FakeLLM, Fault
from tests.obedient_model import fence_of, read

QUERY = "rollback"

pytestmark = pytest.mark.usefixtures("unhurried")


def rubric(body):
    """Score what names deployctl 100, and everything else 40."""
    passages = read(body["messages"][1]["content"], fence_of(body["messages"]))[1]
    scored = [(number, 100 if "deployctl" in text else 40) for number, text in passages]
    rows = ({"id": it, "relevance_score": score, "answerability": False, "key_evidence": ""} for it, score in scored)
    return json.dumps({"results": list(rows)})


@pytest.fixture
def model(world):
    kept_relevance.cache_clear()
    with FakeLLM() as running:
        running.says(rubric)
        LanguageModel.objects.create(
            slug="m", name="M", base_url=running.url, model="fake", max_retries=0, timeout_seconds=5, is_default=True
        )
        yield running


@pytest.fixture
def questions(world):
    made = set_named("Release questions", actor=world.alice)
    save_case(made, QUERY, actor=world.alice)
    return made


def passage(word):
    chunk = Chunk.objects.get(text__contains=word)
    return PassageId(chunk.document_id, chunk.content_hash)


def measured(questions, world, **asked):
    return runs.run_now(questions, RunRequest("corecube", **asked), principal=world.principal("alice"))


@pytest.mark.parametrize(
    ("score", "grade"), [(100, 3), (85, 3), (84.9, 2), (70, 2), (55, 2), (54, 1), (40, 1), (20, 1), (19, 0), (0, 0)]
)
def test_a_score_has_the_grade_of_the_nearest_step(score, grade):
    assert grade_of(score) == grade


def test_its_grades_count_only_in_runs_that_say_so(questions, world, model):
    scope = scope_for(world.principal("alice"))
    judge(QUERY, passage("tangerine"), grade=2, by=world.alice, scope=scope)
    run = measured(questions, world, counts="model")
    ((case),) = runs.result_of(run).cases
    assert case.grades[passage("deployctl")] == 3
    assert case.grades[passage("tangerine")] == 2
    assert case.measures.judged == 1
    assert case.other_grades == len(case.grades) - 1 > 0
    assert set(Judgment.objects.filter(source="model").values_list("explanation", flat=True)) == {"by m"}
    # Nothing else knows them.
    assert set(grades_of(QUERY, viewer=world.bob, scope=scope)) == {passage("tangerine")}
    assert set(runs.result_of(measured(questions, world)).cases[0].grades) == {passage("tangerine")}
    # They are asked for once.
    before = len(model.requests)
    assert runs.result_of(measured(questions, world, counts="model")).grades == runs.result_of(run).grades
    assert len(model.requests) == before


def test_people_come_before_it_and_their_agreement_is_known(questions, world, model):
    measured(questions, world, counts="model")
    scope = scope_for(world.principal("alice"))
    for word, grade in (("deployctl", 3), ("zanzibar", 1), ("tangerine", 0)):
        judge(QUERY, passage(word), grade=grade, by=world.bob, scope=scope)
    found = agreement(rated_passages(questions, scope))
    # Squared distances 0, 0, 1: mean 1/3. Expected over 9 pairs of (3, 1, 0) with (3, 1, 1): 0+4+4+4+0+0+9+1+1 = 23.
    assert found.model == Agreement(3, pytest.approx(1 - (1 / 3) / (23 / 9)))
    assert (found.pairs, found.disputed) == ((), 0)
    grades = grades_of(QUERY, viewer=world.alice, scope=scope, counts_model=True)
    assert (grades[passage("tangerine")].grade, grades[passage("tangerine")].is_model) == (0, False)


def test_it_reads_only_what_the_rules_allow(questions, world, model):
    RoutingRule.objects.create(compartment=world.ledger.compartment, language_model=None)
    run = measured(questions, world, counts="model")
    assert "tangerine" not in model.heard()
    assert "deployctl" in model.heard()
    assert run.status == "done"


def test_a_model_that_fails_degrades_the_case(questions, world, model):
    model.fault = Fault.ERROR
    run = measured(questions, world, counts="model")
    ((case),) = runs.result_of(run).cases
    assert (run.status, case.grades, bool(case.degraded)) == ("done", {}, True)
    LanguageModel.objects.all().delete()
    ((case),) = runs.result_of(measured(questions, world, counts="model")).cases
    assert case.degraded
