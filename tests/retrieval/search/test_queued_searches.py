"""The slower tier: a language model puts the question in other words, within the rules, and a worker searches."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.access import ScopeRequest, scope_for
from corecube.errors import ConflictError, InvalidRequestError, NotFoundError
from corecube.models import ApiKey
from retrieval.engine.metadata_conditions import Condition, Conditions
from retrieval.engine.stored_filter import FullFilter, filter_of
from retrieval.errors import AnswerGarbageError, NoLanguageModelError, OverridesError
from retrieval.llm.expansion import variants_in
from retrieval.models import (
    Chunk,
    Document,
    LanguageModel,
    PresetVersion,
    QueuedSearch,
    RoutingRule,
    SearchRecord,
    Usage,
)
from retrieval.presets.catalog import PRESETS
from retrieval.presets.helix.config import HelixConfig
from retrieval.presets.helix.stages.names import LinkEntities
from retrieval.records.stored_trace import ranking_of
from retrieval.search import runtime
from retrieval.search.queued_searches import forget_finished, queue_search, queued_of, run_queued, take_up_lost
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from retrieval.stages.variants import Variants, with_variants
from tests.fake_llm import FakeLLM, Fault
from tests.retrieval.presets.helix.test_preset import FORBIDDEN, reachable

ASKED = "How do I undo a deployment?"
OTHERS = ("roll back the release", "drain the queue")
HELIX = PRESETS["helix"]


@pytest.fixture
def fake():
    with FakeLLM() as running:
        running.says(json.dumps({"questions": list(OTHERS), "passage": "Run deployctl rollback before anything else."}))
        yield running


@pytest.fixture
def model(world, fake):
    return LanguageModel.objects.create(
        slug="m", name="M", base_url=fake.url, model="fake-small", is_default=True, max_retries=0
    )


def ask(world, name="bob", text=ASKED, **more):
    return queue_search(SearchRequest(text=text, preset="helix", **more), principal=world.principal(name))


def ran(job):
    run_queued()
    job.refresh_from_db()
    return job


class TestVariants:
    def test_an_answer_is_read_whatever_stands_around_it(self):
        answer = 'Sure!\n```json\n{"questions": ["a b", "A B?", 7, "x"], "passage": " one\\n two "}\n```'
        assert variants_in(answer, "A b") == ("A B?", "one two")
        assert variants_in(json.dumps({"questions": [f"q{n}" for n in range(9)]}), "x") == ("q0", "q1", "q2")

    @pytest.mark.parametrize("answer", ["", "no", "{", "[1]", '{"questions": "a"}', '{"questions": ["Same"]}'])
    def test_what_says_nothing_else_is_an_error(self, answer):
        with pytest.raises(AnswerGarbageError):
            variants_in(answer, "same")

    def test_each_is_searched_by_every_leg_and_fused(self, world):
        request = SearchRequest(text=ASKED, preset="helix", variants=OTHERS)
        outcome = search(request, principal=world.principal("bob"))
        legs = set(outcome.state.rankings)
        assert {"dense", "dense_2", "dense_3", "bm25_2", "bm25_3"} <= legs
        best = outcome.hits[0]
        # RRF over all of them, by hand: 1 / (60 + rank) for each ranking that has it.
        assert best.signals["rrf"] == pytest.approx(sum(1 / (60 + rank) for rank in best.ranks.values()))
        (span,) = [span for span in outcome.trace if span.stage == "variants"]
        assert "Searched 2 of 2" in span.notes[0].text
        assert outcome.state.query.text == ASKED

    def test_names_are_read_in_the_question_alone(self, world, monkeypatch):
        read = []
        of_question = LinkEntities.read
        monkeypatch.setattr(
            LinkEntities, "read", lambda it, state: read.append(state.query.text) or of_question(it, state)
        )
        request = SearchRequest(text=ASKED, preset="helix", variants=OTHERS)
        outcome = search(request, principal=world.principal("bob"))
        assert {"dense_2", "dense_3"} <= set(outcome.state.rankings)
        assert read == [ASKED]

    @pytest.mark.usefixtures("world")
    def test_a_search_without_any_has_no_such_stage(self):
        pipeline = HELIX.build(HelixConfig(), runtime.resources())
        assert with_variants(pipeline, (), characters=500) is pipeline
        assert "variants" not in str(pipeline)

    @pytest.mark.usefixtures("world")
    def test_the_pipeline_that_searches_them_reaches_no_language_model(self):
        held = reachable(with_variants(HELIX.build(HelixConfig(), runtime.resources()), OTHERS, characters=500))
        assert any(isinstance(it, Variants) for it in held)
        assert [it for it in held if isinstance(it, FORBIDDEN)] == []
        assert [it for it in held if hasattr(it, "stream") and hasattr(it, "is_extractive")] == []


@pytest.mark.usefixtures("model")
class TestQueue:
    def test_a_worker_searches_for_what_the_language_model_wrote(self, world, fake):
        job = ran(ask(world))
        assert (job.status, job.code, job.text) == ("done", "", "")
        assert job.variants[:2] == list(OTHERS)
        record = SearchRecord.objects.get(pk=job.record_id)
        assert (record.query, record.user, record.preset) == (ASKED, world.bob, "helix")
        assert ASKED in fake.heard()
        assert Usage.objects.get().user_id == world.bob.pk

    def test_it_is_searched_within_what_was_asked_for(self, world):
        Document.objects.filter(title="Rolling back").update(metadata={"author": "Ann"})
        asked = FullFilter(conditions=Conditions((Condition(("author",), "is", "Ann"),)))
        job = ran(ask(world, conditions=asked.conditions))
        record = SearchRecord.objects.get(pk=job.record_id)
        assert filter_of(record.trace["filter"]) == asked
        found = {chunk_id.document_id for chunk_id, _ in ranking_of(record.trace)}
        assert found == {Document.objects.get(title="Rolling back").pk}

    def test_the_language_model_is_shown_the_question_alone(self, world, fake):
        ran(ask(world))
        (request,) = fake.requests
        assert json.loads(request["messages"][1]["content"]) == {"question": ASKED}
        assert "deployctl" not in fake.heard()

    @pytest.mark.parametrize("fault", [Fault.ERROR, Fault.CUT, Fault.SILENT, Fault.GARBAGE])
    def test_a_language_model_that_fails_fails_the_job_and_says_so(self, world, fake, fault):
        fake.fault = fault
        job = ran(ask(world))
        assert (job.status, job.record_id) == ("failed", None)
        assert job.code.startswith("answer_")
        assert job.message

    def test_a_bad_request_is_refused_at_once(self, world):
        with pytest.raises(InvalidRequestError):
            queue_search(SearchRequest(text="x", preset="corecube"), principal=world.principal("bob"))
        with pytest.raises(InvalidRequestError):
            ask(world, mode="dense")
        with pytest.raises(OverridesError):
            ask(world, overrides={"rerank.candidates": 31})
        assert not QueuedSearch.objects.exists()

    def test_one_person_has_so_many_that_wait(self, world):
        for _ in range(20):
            ask(world)
        with pytest.raises(ConflictError):
            ask(world)
        assert ask(world, "alice").status == "queued"

    def test_a_search_of_a_lost_worker_is_taken_up(self, world):
        job = ask(world)
        long_ago = timezone.now() - timedelta(minutes=6)
        QueuedSearch.objects.update(status="running", started_at=long_ago)
        assert run_queued() == 0
        take_up_lost()
        assert ran(job).status == "done"

    def test_one_whose_workers_are_lost_again_and_again_ends(self, world):
        job = ask(world)
        long_ago = timezone.now() - timedelta(minutes=16)
        QueuedSearch.objects.update(status="running", at=long_ago, started_at=long_ago + timedelta(minutes=10))
        take_up_lost()
        job.refresh_from_db()
        assert (job.status, job.code, job.text, job.request) == ("failed", "worker_lost", "", {})
        assert run_queued() == 0

    def test_it_is_forgotten_after_a_week_and_its_record_is_not(self, world):
        job = ran(ask(world))
        QueuedSearch.objects.update(finished_at=timezone.now() - timedelta(days=8))
        assert forget_finished() == 1
        assert SearchRecord.objects.filter(pk=job.record_id).exists()

    def test_without_kept_texts_nothing_of_the_question_stays(self, world, settings):
        settings.CORECUBE_KEEP_QUERY_TEXT = False
        conditions = Conditions((Condition(("author",), "is", "Ann"),))
        job = ran(ask(world, conditions=conditions))
        assert (job.text, job.variants, job.request) == ("", [], {})
        assert ASKED not in str(SearchRecord.objects.get().trace)
        assert OTHERS[0] not in str(SearchRecord.objects.get().trace)

    def test_whoever_may_not_search_any_more_is_not_searched_for(self, world, fake):
        job = ask(world)
        world.bob.is_active = False
        world.bob.save()
        assert (ran(job).status, job.code, fake.requests) == ("failed", "not_permitted", [])
        with pytest.raises(NoLanguageModelError, match="no access to any connection"):
            ask(world, "charlie")

    def test_a_key_that_was_revoked_meanwhile_searches_no_more(self, world):
        key, _ = ApiKey.issue(user=world.bob, name="k")
        principal = replace(world.principal("bob"), key=key)
        job = queue_search(SearchRequest(text=ASKED, preset="helix"), principal=principal)
        ApiKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now())
        assert (ran(job).status, job.code) == ("failed", "not_permitted")


class TestReranking:
    @pytest.fixture
    def service(self, rerank_server, settings):
        settings.CORECUBE_RERANKER, settings.CORECUBE_RERANKER_KIND = "http", "tei"
        settings.CORECUBE_RERANKER_URL = rerank_server.url
        rerank_server.score(lambda text: 0.95 if "four minutes" in text else 0.1)
        return rerank_server

    @staticmethod
    def best(job):
        return ranking_of(SearchRecord.objects.get(pk=job.record_id).trace)[0][0]

    @pytest.mark.usefixtures("service")
    def test_the_reference_is_reranked_by_the_service_and_needs_no_language_model(self, world):
        principal = world.principal("bob")
        job = ran(queue_search(SearchRequest(text=ASKED, preset="helix@reference"), principal=principal))
        assert (job.status, job.code, job.variants) == ("done", "", [])
        record = SearchRecord.objects.get(pk=job.record_id)
        assert record.preset == "helix@reference"
        assert "rerank" in [span["stage"] for span in record.trace["spans"]]
        assert "four minutes" in Chunk.objects.get(**self.best(job)._asdict()).text

    @pytest.mark.usefixtures("service")
    def test_at_once_it_is_not(self, world):
        request = SearchRequest(text=ASKED, preset="helix@reference")
        assert "rerank" not in [span.stage for span in search(request, principal=world.principal("bob")).trace]

    @pytest.mark.usefixtures("service")
    def test_the_tuned_version_is_reranked_only_if_an_admin_has_it_so(self, world):
        with pytest.raises(NoLanguageModelError):
            ask(world)
        PresetVersion.objects.create(preset="helix", number=1, status="live", values={"rerank.queued_candidates": 30})
        job = ran(ask(world))
        assert job.status == "done"
        assert "four minutes" in Chunk.objects.get(**self.best(job)._asdict()).text

    def test_without_a_service_or_a_language_model_there_is_nothing_to_wait_for(self, world):
        with pytest.raises(NoLanguageModelError):
            queue_search(SearchRequest(text=ASKED, preset="helix@reference"), principal=world.principal("bob"))


class TestWhoMayBeAsked:
    def test_without_a_language_model_it_says_so(self, world):
        with pytest.raises(NoLanguageModelError, match="No language model is available"):
            ask(world)

    @pytest.mark.usefixtures("model")
    def test_a_question_over_a_bound_compartment_goes_to_nobody_else(self, world, fake):
        RoutingRule.objects.create(compartment=world.ledger.compartment, language_model=None)
        with pytest.raises(NoLanguageModelError, match="read everything in this search"):
            ask(world, "alice")
        narrowed = ask(world, "alice", narrowing=ScopeRequest(exclude=("ledger",)))
        assert ran(narrowed).status == "done"
        # Bob does not see what is bound.
        assert ran(ask(world, "bob")).status == "done"
        assert len(fake.requests) == 2

    @pytest.mark.usefixtures("model")
    def test_it_goes_to_the_model_that_everything_is_bound_to(self, world, fake):
        with FakeLLM() as own:
            own.says(json.dumps({"questions": ["another way"]}))
            bound = LanguageModel.objects.create(
                slug="own", name="Own", base_url=own.url, model="fake-own", max_retries=0
            )
            RoutingRule.objects.create(compartment=world.runbooks.compartment, language_model=bound)
            assert ran(ask(world, "bob")).variants == ["another way"]
        assert fake.requests == []

    @pytest.mark.usefixtures("model")
    def test_a_rule_that_came_meanwhile_holds(self, world, fake):
        job = ask(world, "alice")
        RoutingRule.objects.create(compartment=world.ledger.compartment, language_model=None)
        assert (ran(job).status, job.code) == ("failed", "no_language_model")
        assert fake.requests == []

    @pytest.mark.usefixtures("model")
    def test_a_user_whom_no_model_answers_has_no_such_tier(self, world):
        RoutingRule.objects.create(user=world.bob, language_model=None)
        with pytest.raises(NoLanguageModelError):
            ask(world)


class TestFetching:
    @pytest.mark.usefixtures("model")
    def test_only_its_asker_has_it(self, world):
        job = ask(world)
        assert queued_of(job.pk, world.principal("bob")) == job
        for other in (world.principal("alice"), replace(world.principal("bob"), actor=world.alice)):
            with pytest.raises(NotFoundError):
                queued_of(job.pk, other)

    @pytest.mark.usefixtures("model")
    def test_the_api_queues_and_gives_what_was_found(self, world, client):
        secret = world.key("bob")
        headers = {"Authorization": f"Bearer {secret}"}
        body = {"query": ASKED, "preset": "helix"}
        taken = client.post("/api/v1/searches", body, content_type="application/json", headers=headers)
        assert (taken.status_code, taken.json()["status"]) == (202, "queued")
        run_queued()
        got = client.get(taken.json()["url"], headers=headers).json()
        assert (got["status"], got["variants"][:2]) == ("done", list(OTHERS))
        found = got["result"]
        assert found["hits"][0]["title"] == "Rolling back"
        assert found["passages"][0]["number"] == 1
        assert found["answerability"]["verdict"] in {"answerable", "partial", "not_answerable"}
        other = {"Authorization": f"Bearer {world.key('charlie')}"}
        assert client.get(taken.json()["url"], headers=other).status_code == 404

    def test_the_api_refuses_where_no_model_may_be_asked(self, world, client):
        headers = {"Authorization": f"Bearer {world.key('bob')}"}
        body = {"query": ASKED, "preset": "helix"}
        refused = client.post("/api/v1/searches", body, content_type="application/json", headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "no_language_model")

    @pytest.mark.usefixtures("model")
    def test_what_was_taken_from_its_asker_is_not_given_out(self, world, client):
        job = ran(ask(world))
        secret = world.key("bob")
        world.bob.groups.clear()
        assert scope_for(world.principal("bob")).connection_ids == []
        got = client.get(f"/api/v1/searches/{job.pk}", headers={"Authorization": f"Bearer {secret}"}).json()
        assert (got["result"]["hits"], got["result"]["passages"], got["result"]["answerability"]) == ([], [], None)
        assert "rollback" not in json.dumps(got["result"])
