"""Runs that answer their questions: what is measured of the answers, what they cost, and that no text stays."""

import json
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from corecube.errors import InvalidRequestError
from retrieval.answers.events import Outcome
from retrieval.errors import SearchTimeoutError
from retrieval.evaluation import comparing, question_sets, run_files, runs
from retrieval.evaluation.case_answers import expected_in, expected_text
from retrieval.evaluation.components import Components
from retrieval.evaluation.question_sets import CaseFacts, expect, save_case
from retrieval.evaluation.runs import RunRequest
from retrieval.models import EvaluationRun, LanguageModel, RunCase, SearchRecord, Usage
from tests.fake_llm import FakeLLM, Fault
from tests.questions import FOOTBALL, ROLLBACK, TANGERINE

pytestmark = pytest.mark.usefixtures("unhurried")

SAID = "Run deployctl rollback before touching the staging database [1]. It costs 4711 crowns [1]."


@pytest.fixture
def expected(questions, world):
    """The set, with what the answers to two cases must contain."""
    for query, answers in ((ROLLBACK, (("deployctl rollback", "undo"),)), (TANGERINE, (("no such words",),))):
        expect(questions.cases.get(query=query), answers, actor=world.alice)
    return questions


@pytest.fixture
def model(world):
    with FakeLLM() as fake:
        fake.says(SAID)
        LanguageModel.objects.create(
            slug="cloud",
            name="Cloud",
            base_url=fake.url,
            model="fake-small",
            max_retries=0,
            is_default=True,
            prompt_price=Decimal(1000),
            completion_price=Decimal(2000),
        )
        yield fake


def measured(questions, principal, **asked):
    run = runs.run_now(
        questions, RunRequest(**{"preset": "corecube", "has_answers": True} | asked), principal=principal
    )
    assert run.status == "done", run.message
    return run, {it.query: it for it in runs.result_of(run).cases}


def test_answers_are_measured_as_users_get_them(expected, world):
    run, found = measured(expected, world.principal("alice"))
    rollback, wrong, football = (found[query].answer for query in (ROLLBACK, TANGERINE, FOOTBALL))
    assert (rollback.provider, rollback.outcome, rollback.measures.right) == ("extractive", Outcome.ASSERTED, 1.0)
    assert (wrong.measures.right, wrong.measures.answered, wrong.measures.not_asserted) == (0.0, 1.0, None)
    assert (football.outcome, football.measures.not_asserted) == (Outcome.REFUSED, 1.0)
    assert (football.measures.right, football.measures.answered) == (None, None)
    means = runs.result_of(run).answer_means
    # Quotes are not checked, and cost nothing.
    assert (means.right, means.answered, means.not_asserted, means.supported) == (0.5, 1.0, 1.0, None)
    assert rollback.milliseconds > 0
    assert runs.result_of(run).spent.tokens == 0
    assert not SearchRecord.objects.exists()


def test_a_question_that_nobody_knows_to_be_answerable_counts_for_neither(questions, world):
    drawn, _ = save_case(questions, "who sells umbrellas in brazil", actor=world.alice)
    run, found = measured(questions, world.principal("alice"))
    refused, figures = found[drawn.query], runs.figures_of(run)
    assert (refused.is_refused, refused.is_known) == (True, False)
    assert (refused.answer.outcome, refused.answer.measures.answered) == (Outcome.REFUSED, None)
    assert (figures.wrongly_refused, figures.answer_means.answered) == ((0, 2), 1.0)
    assert sum(it.count for it in figures.answerability.bins) == 3
    expect(drawn, (("brollies",),), actor=world.alice)
    assert runs.figures_of(run).wrongly_refused == (1, 3)


def test_a_language_model_is_measured_with_its_support_tokens_and_cost(expected, world, model):
    run, found = measured(expected, world.principal("alice"))
    answer, spent = found[ROLLBACK].answer, found[ROLLBACK].spent
    assert (answer.provider, answer.measures.right, answer.measures.supported) == ("cloud", 1.0, 0.5)
    used = Usage.objects.all()
    assert len(used) == len(model.requests) == 3
    assert spent.tokens in {it.prompt_tokens + it.completion_tokens for it in used}
    total = runs.result_of(run).spent
    assert (total.cost, total.tokens > 0) == (sum(it.cost for it in used), True)
    assert total.cost > 0
    assert {it.record_id for it in used} == {None}


def test_no_text_of_an_answer_is_stored(expected, world, model):
    run, _ = measured(expected, world.principal("alice"))
    stored = json.dumps(list(run.results.values("answer", "degraded", "measures")))
    written = stored + run_files.csv_of(runs.result_of(run)) + json.dumps(run_files.as_json(run, runs.result_of(run)))
    assert "4711" not in written
    assert "crowns" not in stored


def test_an_answer_reads_only_what_the_user_of_its_case_may_see(questions, world, model):
    save_case(questions, "stolen passphrase", actor=world.alice, facts=CaseFacts(user=world.bob))
    save_case(questions, "what is the stolen passphrase", actor=world.alice)
    measured(questions, world.principal("alice"))
    heard = {text.rpartition("\n")[2]: text for it in model.requests if (text := it["messages"][-1]["content"])}
    assert "zanzibar" in heard["what is the stolen passphrase"]
    assert "zanzibar" not in heard.get("stolen passphrase", "")
    assert RunCase.objects.get(query="stolen passphrase").answer["outcome"]


def test_a_model_that_fails_leaves_quotes_and_is_marked(expected, world, model):
    model.fault = Fault.ERROR
    _, found = measured(expected, world.principal("alice"))
    assert (found[ROLLBACK].answer.provider, found[ROLLBACK].degraded) == ("extractive", ("fell_back",))


def test_a_case_whose_search_times_out_counts_as_refused(expected, world, monkeypatch):
    def too_late(*_, **__):
        raise SearchTimeoutError

    monkeypatch.setattr(question_sets, "unrecorded_search", too_late)
    run, found = measured(expected, world.principal("alice"))
    assert found[ROLLBACK].answer.outcome is Outcome.REFUSED
    means = runs.result_of(run).answer_means
    assert (means.right, means.answered, means.not_asserted, means.consistent) == (0.0, 0.0, 1.0, None)


def test_a_run_answers_by_the_chosen_model_or_by_quotes(expected, world, model):
    alice = world.principal("alice")
    with FakeLLM() as other:
        other.says(SAID)
        LanguageModel.objects.create(slug="local", name="Local", base_url=other.url, model="fake-small", max_retries=0)
        _, found = measured(expected, alice, components=Components(language_model="local"))
        assert (found[ROLLBACK].answer.provider, model.requests) == ("local", [])
        run, found = measured(expected, alice, components=Components(language_model="extractive"))
        assert (found[ROLLBACK].answer.provider, model.requests) == ("extractive", [])
        first, second = (EvaluationRun.objects.exclude(pk=run.pk).get(), run)
        assert first.configuration_hash != second.configuration_hash
        assert first.fingerprint == second.fingerprint


def test_runs_with_answers_are_compared_by_them(expected, world, model):
    alice = world.principal("alice")
    (first, _), (second, _) = (
        measured(expected, alice),
        measured(expected, alice, components=Components(language_model="extractive")),
    )
    pairs = comparing.compared(runs.result_of(first), runs.result_of(second))
    found = comparing.differences(pairs)
    assert (found["right"].queries, found["not_asserted"].queries) == (2, 1)
    assert "supported" not in found
    plain = runs.run_now(expected, RunRequest("corecube"), principal=alice)
    assert "right" not in comparing.differences(comparing.compared(runs.result_of(first), runs.result_of(plain)))


def test_the_export_has_a_line_of_each_answer(expected, world):
    run, _ = measured(expected, world.principal("alice"))
    head, *lines = run_files.csv_of(runs.result_of(run)).splitlines()
    assert head.endswith(
        "outcome,right,answered,not_asserted,consistent,supported,provider,answer_milliseconds,model_tokens,cost"
    )
    assert ",asserted,1.0,1.0," in next(it for it in lines if it.startswith(ROLLBACK))
    facts = run_files.as_json(run, runs.result_of(run))
    assert facts["answers"]["outcomes"]["refused"] >= 1
    assert facts["results"][0]["answer"]["measures"].keys() == facts["answers"]["measures"].keys()
    json.dumps(facts)


def test_the_command_answers_too(expected):
    out = StringIO()
    call_command("evaluate", "--set", expected.slug, "--save", "answered", "--with-answers", "--json", stdout=out)
    assert json.loads(out.getvalue())["answers"]["measures"]["right"] == 0.5
    assert EvaluationRun.objects.get().has_answers
    assert RunCase.objects.exclude(answer={}).count() == 3
    with pytest.raises(CommandError, match="--save"):
        call_command("evaluate", "--set", expected.slug, "--with-answers")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("4 weeks", (("4 weeks",),)),
        (" 4  weeks | four weeks ;; paid |", (("4 weeks", "four weeks"), ("paid",))),
    ],
)
def test_an_expected_answer_is_read_and_written(text, parts):
    assert expected_in(text) == parts
    assert expected_in(expected_text(parts)) == parts


@pytest.mark.parametrize("text", ["x" * 201, ";".join("abcdefghijk"), "|".join("abcdefghijk")])
def test_an_expected_answer_has_limits(text):
    with pytest.raises(InvalidRequestError, match="at most"):
        expected_in(text)
