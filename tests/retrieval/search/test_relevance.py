"""A language model that judges candidates, behind real HTTP: whatever it does, the search goes on."""

import json
import re

import pytest

from corecube.access import ScopeRequest
from retrieval.engine.types import ScoreType
from retrieval.models import Chunk, Document, LanguageModel, RoutingRule, SearchRecord, Usage
from retrieval.presets.contextpack.config import ContextPackConfig
from retrieval.presets.contextpack.judge import RelevanceConfig, RubricScores
from retrieval.search.context_packs import retrieve
from retrieval.search.prepare import kept_relevance
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fake_llm import FakeLLM, Fault
from tests.obedient_model import fence_of, read

ASKED = "How long does draining the queue take?"
ANSWERING = "four minutes"
#: What a service can do wrong that has an end.
FAILING = [
    *(Fault.ERROR, Fault.OVERLOADED, Fault.RATE_LIMITED, Fault.UNAUTHORIZED, Fault.NO_MODEL, Fault.BAD_REQUEST),
    *(Fault.CUT, Fault.CUT_QUIETLY, Fault.ERROR_EVENT, Fault.NOT_HTTP, Fault.GARBAGE, Fault.WRONG_SHAPE),
    *(Fault.WRONG_TYPE, Fault.EMPTY_CHOICES, Fault.SILENT, Fault.REASONS_ONLY, Fault.FILTERED, Fault.REDIRECT),
    Fault.HANGS_UP,
]


def result(number, text):
    found = ANSWERING in text
    return {
        "id": number,
        "relevance_score": 100 if found else 40,
        "answerability": found,
        "key_evidence": ANSWERING if found else "",
    }


def candidates(body):
    """Return the numbered candidates that a request shows."""
    return read(body["messages"][1]["content"], fence_of(body["messages"]))[1]


def judging(body):
    """Judge as the rubric says: what names the four minutes answers."""
    return json.dumps({"results": [result(number, text) for number, text in candidates(body)]})


@pytest.fixture
def fake():
    kept_relevance.cache_clear()
    with FakeLLM() as running:
        running.says(judging)
        yield running


def stored(slug, fake, **more):
    settings = {"max_retries": 0, "timeout_seconds": 5, "silence_seconds": 2, **more}
    return LanguageModel.objects.create(slug=slug, name=slug.title(), base_url=fake.url, model="fake-small", **settings)


@pytest.fixture
def model(world, fake):
    return stored("m", fake, is_default=True)


def find(world, name="bob", text=ASKED, overrides=None, **more):
    request = SearchRequest(text=text, preset="contextpack", overrides=overrides or {}, **more)
    return search(request, principal=world.principal(name))


def notes(outcome):
    return {note.code: note.text for span in outcome.trace for note in span.notes}


class TestJudging:
    @pytest.mark.usefixtures("model")
    def test_what_answers_comes_first_with_its_evidence(self, world):
        outcome = find(world)
        assert ANSWERING in outcome.hits[0].chunk.text
        assert [hit.score for hit in outcome.hits] == [100, *[40] * (len(outcome.hits) - 1)]
        assert {hit.score_type for hit in outcome.hits} == {ScoreType.RUBRIC}
        assert outcome.hits[0].signals["answers"] == 1
        best = outcome.state.part(RubricScores).relevance[outcome.hits[0].chunk_id]
        assert (best.is_answering, best.evidence) == (True, ANSWERING)
        assert outcome.state.degraded == ()
        assert notes(outcome)["relevance_judged"].startswith("m scored ")

    @pytest.mark.usefixtures("model")
    def test_the_trace_tells_what_it_took(self, world):
        outcome = find(world)
        (event,) = [it for span in outcome.trace if span.stage == "judge_relevance" for it in span.events]
        used = Usage.objects.get()
        assert event == {
            "event": "relevance_spent",
            "model": "m",
            "known": 0,
            "calls": 1,
            "prompt_tokens": used.prompt_tokens,
            "completion_tokens": used.completion_tokens,
            "is_estimated": used.is_estimated,
        }

    @pytest.mark.usefixtures("model")
    def test_the_api_tells_it_where_it_explains(self, world, client):
        headers = {"Authorization": f"Bearer {world.key('bob')}"}
        body = {"query": ASKED, "preset": "contextpack", "explain": True}
        told = client.post("/api/v1/search", body, content_type="application/json", headers=headers).json()
        assert told["hits"][0]["explain"]["relevance"] == {
            "relevance_score": 100,
            "answerability": True,
            "key_evidence": ANSWERING,
        }
        body = {"query": ASKED}
        pack = client.post("/api/v1/context-pack", body, content_type="application/json", headers=headers).json()
        best = pack["trace"]["rerank_results"][0]
        assert (best["relevance_score"], best["answerability"], best["judged"]) == (100, True, True)
        assert best["key_evidence"] == ANSWERING

    @pytest.mark.usefixtures("model")
    def test_a_pack_tells_the_judgments_of_all_candidates(self, world):
        best = ContextPackConfig(relevance=RelevanceConfig(top=1))
        trace = retrieve(ASKED, config=best, principal=world.principal("bob")).trace
        assert len(trace.rerank_results) > trace.expansion["primary"]["found"] == 1
        assert {it.chunk_id for it in trace.rerank_results} == {it.chunk_id for it in trace.candidates}
        assert all(it.is_judged for it in trace.rerank_results)
        assert [it.relevance_score for it in trace.rerank_results] == [100, *[40] * (len(trace.candidates) - 1)]

    @pytest.mark.usefixtures("model")
    def test_evidence_is_neither_stored_nor_logged(self, world, caplog):
        caplog.set_level("DEBUG")
        find(world)
        assert ANSWERING not in json.dumps(SearchRecord.objects.get().trace)
        assert ANSWERING not in caplog.text

    @pytest.mark.usefixtures("model")
    def test_candidates_are_shown_as_data_and_cut(self, world, fake):
        Chunk.objects.filter(text__contains=ANSWERING).update(text=f"{ANSWERING} " + "x" * 5000)
        find(world, overrides={"relevance.characters": 100})
        (told,) = [text for _, text in candidates(fake.requests[0]) if ANSWERING in text]
        assert len(told.splitlines()[-1]) == 100

    @pytest.mark.usefixtures("model")
    def test_the_answer_is_asked_for_by_the_schema(self, world, fake):
        find(world)
        assert fake.requests[0]["response_format"]["json_schema"]["strict"] is True
        kept_relevance.cache_clear()
        find(world, overrides={"relevance.strict_json": 0})
        assert "response_format" not in fake.requests[-1]

    @pytest.mark.usefixtures("model")
    def test_no_more_candidates_are_judged_than_are_to_be(self, world, fake):
        outcome = find(world, overrides={"relevance.candidates": 1})
        assert [number for number, _ in candidates(fake.requests[0])] == [1]
        assert [hit.score_type for hit in outcome.hits][1:] == [ScoreType.MAPPED] * (len(outcome.hits) - 1)
        scores = [hit.score for hit in outcome.hits]
        assert scores == sorted(scores, reverse=True)

    def test_long_prompts_are_shared_out_and_asked_side_by_side(self, world, fake):
        # 96 tokens of answer hold one result: (96 - 16) / 80.
        stored("m", fake, is_default=True, max_answer_tokens=96)
        outcome = find(world)
        assert len(fake.requests) == len(outcome.hits) > 1
        assert all(len(candidates(body)) == 1 for body in fake.requests)
        assert [hit.score for hit in outcome.hits][:2] == [100, 40]

    @pytest.mark.usefixtures("model")
    def test_what_it_took_is_noted(self, world):
        find(world)
        used = Usage.objects.get()
        assert (used.user_id, used.record_id) == (world.bob.pk, SearchRecord.objects.get().pk)

    @pytest.mark.usefixtures("model")
    def test_a_title_longer_than_any_prompt_is_cut(self, world, fake):
        Document.objects.update(title="T" * 30_000)
        outcome = find(world)
        assert len(json.dumps(fake.requests[0]["messages"])) < 10_000
        assert {hit.score_type for hit in outcome.hits} == {ScoreType.RUBRIC}


class TestFaults:
    def first(self, fake, *answers):
        """Give these answers to the first requests, then judge."""
        left = list(answers)
        fake.says(lambda body: left.pop(0) if left else judging(body))

    @pytest.mark.usefixtures("model")
    @pytest.mark.parametrize("broken", ["", "I am sorry, I cannot do that.", '{"results": [', "[]", '{"results": 7}'])
    def test_malformed_json_is_asked_for_again(self, world, fake, broken):
        self.first(fake, broken or " ")
        outcome = find(world)
        assert (outcome.hits[0].score, outcome.state.degraded) == (100, ())
        assert len(fake.requests) == 2

    @pytest.mark.usefixtures("model")
    def test_what_was_left_out_is_asked_for_alone(self, world, fake):
        self.first(fake, json.dumps({"results": [result(1, "nothing")]}))
        outcome = find(world)
        assert [len(candidates(body)) for body in fake.requests] == [len(outcome.hits), len(outcome.hits) - 1]
        assert {hit.score_type for hit in outcome.hits} == {ScoreType.RUBRIC}

    @pytest.mark.usefixtures("model")
    def test_what_is_left_out_to_the_end_stands_behind_what_is_related(self, world, fake):
        fake.says(json.dumps({"results": [result(1, "nothing")]}))
        outcome = find(world, overrides={"relevance.attempts": 1})
        assert [hit.score_type for hit in outcome.hits][:2] == [ScoreType.RUBRIC, ScoreType.MAPPED]
        assert outcome.state.degraded == ("relevance_incomplete",)

    @pytest.mark.usefixtures("model")
    def test_what_is_left_out_stands_before_what_is_unrelated_and_is_told_as_not_judged(self, world, fake):
        fake.says(json.dumps({"results": [{**result(1, "nothing"), "relevance_score": 0}]}))
        once = ContextPackConfig(relevance=RelevanceConfig(attempts=1))
        pack = retrieve(ASKED, config=once, principal=world.principal("bob"))
        told = [(it.relevance_score, it.is_judged) for it in pack.trace.rerank_results]
        assert len(told) == len(pack.trace.candidates) > 1
        assert told[-1] == (0, True)
        assert all(0 < score <= 100 and not is_judged for score, is_judged in told[:-1])
        assert [score for score, _ in told] == sorted((score for score, _ in told), reverse=True)

    @pytest.mark.usefixtures("model")
    def test_candidates_that_there_are_not_are_passed_over(self, world, fake):
        def more(body):
            results = json.loads(judging(body))["results"]
            return json.dumps({"results": [*results, result(99, ANSWERING), result(0, ANSWERING)]})

        fake.says(more)
        outcome = find(world)
        assert (outcome.hits[0].score, outcome.state.degraded, len(fake.requests)) == (100, (), 1)

    @pytest.mark.usefixtures("model")
    def test_scores_out_of_range_count_as_left_out(self, world, fake):
        self.first(fake, json.dumps({"results": [{**result(1, ""), "relevance_score": 1000}]}))
        outcome = find(world)
        assert max(hit.score for hit in outcome.hits) == 100
        assert len(fake.requests) == 2

    @pytest.mark.usefixtures("model")
    @pytest.mark.parametrize("fault", FAILING)
    def test_whatever_fails_the_blend_stands_and_says_so(self, world, fake, fault):
        fake.fault = fault
        outcome = find(world)
        assert outcome.hits
        assert {hit.score_type for hit in outcome.hits} == {ScoreType.MAPPED}
        assert [hit.score for hit in outcome.hits] == sorted((hit.score for hit in outcome.hits), reverse=True)
        assert outcome.state.degraded == ("relevance_failed",)
        assert (
            "The blend's score is used instead, on the same scale from 0 to 100." in notes(outcome)["relevance_failed"]
        )
        assert outcome.passages

    @pytest.mark.usefixtures("model")
    @pytest.mark.parametrize("fault", [Fault.SLOW_FIRST, Fault.SLOW_HEADERS, Fault.SLOW_DRIP, Fault.ENDLESS])
    def test_one_that_takes_too_long_is_left(self, world, fake, fault):
        fake.fault, fake.drip_seconds = fault, 5
        outcome = find(world, overrides={"relevance.timeout_ms": 800})
        assert outcome.hits
        assert {hit.score_type for hit in outcome.hits} == {ScoreType.MAPPED}
        assert set(outcome.state.degraded) <= {"relevance_timeout", "relevance_failed"}
        assert outcome.state.degraded

    @pytest.mark.usefixtures("model")
    @pytest.mark.parametrize("fault", [Fault.ERROR, Fault.OVERLOADED, Fault.CUT, Fault.SILENT])
    def test_what_passes_is_tried_again(self, world, fake, fault):
        fake.then(fault)
        outcome = find(world)
        assert (outcome.hits[0].score, outcome.state.degraded) == (100, ())

    @pytest.mark.usefixtures("model")
    def test_a_refusal_is_not_asked_again(self, world, fake):
        fake.fault = Fault.UNAUTHORIZED
        find(world)
        assert len(fake.requests) == 1

    @pytest.mark.usefixtures("model")
    def test_a_service_that_knows_no_schema_is_asked_without(self, world, fake):
        fake.refused_format = True
        outcome = find(world)
        assert (outcome.hits[0].score, outcome.state.degraded) == (100, ())
        assert ["response_format" in body for body in fake.requests] == [True, False]
        kept_relevance.cache_clear()
        find(world)
        assert "response_format" not in fake.requests[-1]

    def test_the_next_model_is_asked_where_one_fails(self, world, model, fake):
        with FakeLLM() as second:
            second.says(judging)
            LanguageModel.objects.filter(pk=model.pk).update(fallback=stored("second", second))
            fake.fault = Fault.ERROR
            outcome = find(world)
        assert notes(outcome)["relevance_judged"].startswith("second scored")
        assert outcome.hits[0].score == 100

    def test_one_that_hangs_leaves_time_for_the_next(self, world, model, fake):
        with FakeLLM() as second:
            second.says(judging)
            LanguageModel.objects.filter(pk=model.pk).update(fallback=stored("second", second))
            fake.fault, fake.drip_seconds = Fault.SLOW_HEADERS, 5
            outcome = find(world, overrides={"relevance.timeout_ms": 3000})
        assert notes(outcome)["relevance_judged"].startswith("second scored")
        assert outcome.state.degraded == ()

    @pytest.mark.usefixtures("model")
    def test_one_that_hangs_is_left_alone(self, world, fake, monkeypatch):
        monkeypatch.setattr("retrieval.presets.contextpack.judging._TELLING_SECONDS", 0.1)
        fake.fault, fake.drip_seconds = Fault.SLOW_HEADERS, 5
        told = [find(world, overrides={"relevance.timeout_ms": 800}).state.degraded for _ in range(4)]
        assert told == [("relevance_timeout",)] * 3 + [("relevance_failed",)]
        assert len(fake.requests) == 3

    @pytest.mark.usefixtures("model")
    def test_a_time_that_no_model_can_keep_tells_nothing_of_it(self, world, fake):
        fake.fault, fake.drip_seconds = Fault.SLOW_HEADERS, 5
        for _ in range(4):
            assert find(world, overrides={"relevance.timeout_ms": 100}).state.degraded == ("relevance_timeout",)
        fake.fault = Fault.NONE
        assert find(world).state.degraded == ()

    @pytest.mark.usefixtures("model")
    @pytest.mark.parametrize("answer", [Fault.FILTERED, "I am sorry, I cannot do that."])
    def test_what_cannot_be_judged_costs_its_own_judgment_alone(self, world, fake, answer):
        """A service that filters one document, or a document that talks the model out of answering."""

        def unless_it_drains(body):
            return answer if any(ANSWERING in text for _, text in candidates(body)) else judging(body)

        fake.says(unless_it_drains)
        outcome = find(world, overrides={"relevance.attempts": 1})
        kinds = {ANSWERING in hit.chunk.text: hit.score_type for hit in outcome.hits}
        assert kinds == {True: ScoreType.MAPPED, False: ScoreType.RUBRIC}
        assert outcome.state.degraded == ("relevance_incomplete",)
        assert f"in {len(fake.requests)} prompts" in notes(outcome)["relevance_judged"]

    @pytest.mark.usefixtures("model")
    def test_a_service_that_refuses_everything_is_not_asked_on_and_on(self, world, fake):
        fake.fault = Fault.BAD_REQUEST
        assert find(world).state.degraded == ("relevance_failed",)
        assert len(fake.requests) <= 16

    @pytest.mark.usefixtures("model")
    def test_no_time_asks_nobody(self, world, fake):
        outcome = find(world, overrides={"relevance.reserve_ms": 60_000})
        assert (outcome.state.degraded, fake.requests) == (("relevance_timeout",), [])


@pytest.mark.usefixtures("anywhere")
class TestKeeping:
    @pytest.mark.usefixtures("model")
    def test_the_same_question_over_the_same_chunks_is_judged_once(self, world, fake):
        first, again = find(world), find(world)
        assert len(fake.requests) == 1
        assert [hit.score for hit in again.hits] == [hit.score for hit in first.hits]
        assert again.state.part(RubricScores).relevance == first.state.part(RubricScores).relevance
        assert "were cached" in notes(again)["relevance_judged"]

    @pytest.mark.usefixtures("model")
    @pytest.mark.parametrize(
        "change",
        [
            lambda world: find(world, text=f"{ASKED} Really?"),
            lambda world: find(world, "alice", narrowing=ScopeRequest(include=("runbooks",))),
            lambda world: find(world, overrides={"relevance.characters": 900}),
            lambda world: LanguageModel.objects.update(model="fake-large") and find(world),
            lambda world: Chunk.objects.update(content_hash="another") and find(world),
            lambda world: Document.objects.update(title="Another") and find(world),
        ],
    )
    def test_another_question_asker_model_or_text_is_judged_anew(self, world, fake, change):
        find(world)
        change(world)
        assert len(fake.requests) == 2

    @pytest.mark.usefixtures("model")
    def test_what_was_judged_in_part_is_not_kept(self, world, fake):
        fake.says(json.dumps({"results": [result(1, ANSWERING)]}))
        find(world, overrides={"relevance.attempts": 1})
        fake.says(judging)
        assert find(world).state.degraded == ()


class TestWhoMayRead:
    @pytest.mark.parametrize("numbers", [{}, {"deadline_ms": 3000}, {"relevance.reserve_ms": 60_000}])
    def test_without_a_model_the_blend_is_marked_and_nothing_is_degraded(self, world, numbers):
        outcome = find(world, overrides=numbers)
        assert {hit.score_type for hit in outcome.hits} == {ScoreType.MAPPED}
        assert "relevance_none" in notes(outcome)
        assert outcome.state.degraded == ()
        assert all(0 <= hit.signals["mapped"] <= 100 for hit in outcome.hits)

    @pytest.mark.usefixtures("model")
    def test_a_bound_compartments_passages_go_to_its_model_alone(self, world, fake):
        with FakeLLM() as own:
            own.says(judging)
            bound = stored("own", own)
            RoutingRule.objects.create(compartment=world.ledger.compartment, language_model=bound)
            outcome = find(world, "alice", "What did the rollback in March cost?")
            assert "48,200" in own.heard()
        assert fake.requests == []
        assert notes(outcome)["relevance_judged"].startswith("own scored")

    @pytest.mark.usefixtures("model")
    @pytest.mark.parametrize("fault", [Fault.NONE, Fault.ERROR])
    def test_candidates_that_no_single_model_may_read_are_judged_by_none(self, world, fake, fault):
        fake.fault = fault
        RoutingRule.objects.create(compartment=world.ledger.compartment, language_model=None)
        outcome = find(world, "alice", "What did the rollback in March cost?")
        assert (fake.requests, outcome.state.degraded) == ([], ("relevance_forbidden",))
        assert {hit.score_type for hit in outcome.hits} == {ScoreType.MAPPED}

    def test_a_bound_model_that_fails_is_followed_by_none_that_may_not_read(self, world, model, fake):
        with FakeLLM(fault=Fault.ERROR) as own:
            bound = stored("own", own, fallback=model)
            RoutingRule.objects.create(compartment=world.ledger.compartment, language_model=bound)
            outcome = find(world, "alice", "What did the rollback in March cost?")
        assert (fake.requests, outcome.state.degraded) == ([], ("relevance_failed",))

    @pytest.mark.usefixtures("model")
    def test_a_user_whom_no_model_answers_is_judged_for_by_none(self, world, fake):
        RoutingRule.objects.create(user=world.bob, language_model=None)
        assert "relevance_none" in notes(find(world))
        assert fake.requests == []

    @pytest.mark.usefixtures("model")
    def test_a_question_made_of_earlier_answers_goes_where_all_may_go(self, world, fake):
        assert find(world, original_text="How long?").state.degraded == ()
        assert len(fake.requests) == 1
        RoutingRule.objects.create(compartment=world.ledger.compartment, language_model=None)
        # Bob may not see the ledger, so nothing of it can be in his question; in Alice's it can.
        only_runbooks = ScopeRequest(include=("runbooks",))
        assert find(world, original_text="How long then?").state.degraded == ()
        told = find(world, "alice", original_text="How long?", narrowing=only_runbooks)
        assert told.state.degraded == ("relevance_forbidden",)
        assert find(world, "alice", narrowing=only_runbooks).state.degraded == ()

    @pytest.mark.usefixtures("model")
    def test_nothing_out_of_scope_is_shown_to_it(self, world, fake):
        find(world, text="rollback zanzibar tangerine")
        shown = " ".join(text for body in fake.requests for _, text in candidates(body))
        assert re.search("zanzibar|tangerine", shown) is None
