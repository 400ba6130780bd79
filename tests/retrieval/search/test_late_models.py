"""Whole searches with a model that is late: each ends in time, with hits and with passages, and says what happened."""

import json
import threading
import time
from dataclasses import replace

import pytest

from retrieval.admin.preset_versions import promote, save_draft
from retrieval.answers.answering import answered, prepare
from retrieval.encoders.remote_reranker import RemoteReranker, RerankService
from retrieval.engine.types import ScoreType
from retrieval.models import LanguageModel, SearchRecord
from retrieval.presets.catalog import TUNED, preset_named
from retrieval.search import runtime
from retrieval.search.evidence_runs import EvidenceRequest, gather
from retrieval.search.request import SearchRequest
from retrieval.search.section_sets import save_section_set
from retrieval.search.service import search
from tests.fake_llm import FakeLLM, Fault
from tests.fakes import HashEncoder
from tests.profiles import turn

pytestmark = pytest.mark.django_db

QUERY = "how do we roll back staging?"
#: Enough for a busy machine, and little enough for a test.
SECONDS = 1.2
#: What a machine adds that has more to do than it can: no model here comes back that soon after.
BUSY_SECONDS = 0.5
#: A live version's numbers, where they are not the shipped ones.
#: The presets that ask a reranker, all of them or where no language model judges.
RERANKED = [name for name, preset in TUNED.items() if {"rerank", "relevance"} & set(preset.defaults.__slots__)]
NUMBERS = {
    "corecube": {},
    "helix": {"rerank.candidates": 10},
    "consolidated": {},
    "contextpack": {"relevance.reserve_ms": 300},
}
WAYS = ["sleeps", "hangs"]
SECTIONS = {
    "name": "audit",
    "title": "Audit",
    "source_types": [{"name": "markdown"}],
    "sections": [
        {"name": "staging", "title": "Staging", "template": "{subject} roll back staging"},
        {"name": "queues", "title": "Queues", "template": "{subject} drain the queue"},
    ],
}


def late(presets):
    """Return presets with the ways in which their model is late, by default with one each."""
    return [(preset, way) for number, preset in enumerate(presets) for way in turn(WAYS, number, of=len(WAYS))]


@pytest.fixture
def over():
    """Return an event that is set at the test's end, so that nothing hangs beyond it."""
    event = threading.Event()
    yield event
    event.set()


class Late:
    """A local reranker that keeps no time limit."""

    name = "late"
    problem = ""
    score_type = ScoreType.LOGIT
    blend_weight = None

    def __init__(self, wait):
        self.wait = wait
        self.calls = 0

    def score(self, query, texts, *, timeout_seconds):  # noqa: ARG002 -- the protocol's
        self.calls += 1
        self.wait()
        return [0.0] * len(texts)


class LateHits(Late):
    """The same for one that reads the store."""

    name = "late hits"

    def read(self, query):
        return query

    def score_hits(self, query, hits, *, scope, timeout_seconds, read=None):  # noqa: ARG002 -- the protocol's
        return self.score(query, hits, timeout_seconds=timeout_seconds)


class LateEncoder(HashEncoder):
    """An embedding model of this machine that takes its time over queries."""

    wait = staticmethod(lambda: None)

    def encode_query(self, text):
        self.wait()
        return super().encode_query(text)


def dribble(out, over, *beginning):
    """Write a byte now and then, for ever."""
    for part in beginning:
        out.write(part)
    while not over.wait(0.05):
        out.write(b"1")
        out.flush()


HTTP = {
    "sleeps": lambda server: lambda _out, _body: server.over.wait(SECONDS + 1.0),
    "hangs": lambda server: lambda _out, _body: server.over.wait(60),
    "dribbles its head": lambda server: lambda out, _body: dribble(out, server.over, b"HTTP/1.1 200 OK\r\nX-A: "),
    "dribbles its body": lambda server: (
        lambda out, _body: dribble(out, server.over, b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n[")
    ),
    "dribbles chunks": lambda server: (
        lambda out, _body: dribble_chunks(out, server.over, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    ),
}


def dribble_chunks(out, over, beginning):
    out.write(beginning)
    while not over.wait(0.05):
        out.write(b"1\r\n \r\n")


@pytest.fixture
def numbers(world):
    """Make each preset's numbers live."""
    for name, values in NUMBERS.items():
        preset = preset_named(name)
        draft = save_draft(preset=preset, values={"deadline_ms": 1000 * SECONDS, **values}, note="", actor=world.alice)
        promote(preset=preset, number=draft.number, actor=world.alice)
    return world


@pytest.fixture
def find(numbers):
    """Return a function that searches as Bob, checks that he got everything in time, and gives the outcome."""

    def find(preset, text=QUERY, **tools):
        resources = replace(runtime.resources(), **tools)
        started = time.perf_counter()
        request = SearchRequest(text=text, preset=preset)
        outcome = search(request, principal=numbers.principal("bob"), resources=resources)
        seconds = time.perf_counter() - started
        assert outcome.hits, outcome.state.degraded
        assert outcome.passages
        assert seconds <= 1.1 * SECONDS + BUSY_SECONDS
        return outcome

    return find


@pytest.fixture
def remote(rerank_server):
    made = RemoteReranker(RerankService(kind="tei", url=rerank_server.url))
    yield made
    made.close()


@pytest.fixture
def served(transactional_db, settings):
    """Search in threads as an installation does."""
    settings.CORECUBE_LEG_THREADS = 4


@pytest.mark.parametrize(("preset", "way"), late(RERANKED))
def test_a_late_reranker_of_this_machine_leaves_hits_and_passages(find, over, preset, way):
    late = Late(lambda: over.wait(SECONDS + 1.0 if way == "sleeps" else 60))
    outcome = find(preset, reranker=late)
    assert late.calls == 1
    assert "rerank_timeout" in SearchRecord.objects.get(pk=outcome.id).degraded


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("preset", RERANKED)
def test_a_late_reranker_that_reads_the_store_leaves_them_too(find, over, preset):
    late = LateHits(lambda: over.wait(60))
    assert "rerank_timeout" in find(preset, reranker=late).state.degraded
    assert late.calls == 1


@pytest.mark.parametrize(
    ("preset", "way"), [*(("corecube", way) for way in HTTP), ("consolidated", "sleeps"), ("contextpack", "hangs")]
)
def test_a_reranking_service_that_is_late_in_any_way_leaves_them(find, remote, rerank_server, preset, way):
    rerank_server.answer = HTTP[way](rerank_server)
    outcome = find(preset, reranker=remote)
    assert len(rerank_server.requests) == 1
    assert "rerank_timeout" in outcome.state.degraded


@pytest.mark.parametrize("preset", turn(RERANKED, 0, of=2))
def test_a_reranker_that_is_late_again_and_again_is_left_alone(find, over, preset):
    late = Late(lambda: over.wait(60))
    outcomes = [find(preset, reranker=late) for _ in range(4)]
    assert late.calls <= 3
    assert outcomes[-1].state.degraded
    assert "rerank_timeout" not in outcomes[-1].state.degraded


@pytest.mark.parametrize(("preset", "way"), late(TUNED))
def test_an_embedding_model_that_is_late_leaves_what_the_words_find(find, over, preset, way):
    encoder = LateEncoder()
    tools = {"encoder": encoder, "query_cache": None}
    encoder.wait = lambda: over.wait(SECONDS + 1.0 if way == "sleeps" else 60)
    outcome = find(preset, "deployctl rollback", **tools)
    assert "embed_timeout" in outcome.state.degraded
    assert all("dense" not in hit.signals for hit in outcome.hits)


def test_an_embedding_model_that_never_comes_back_is_left_alone(find, over):
    encoder = LateEncoder()
    calls = []
    encoder.wait = lambda: (calls.append(1), over.wait(60))
    outcomes = [find("corecube", "deployctl rollback", encoder=encoder) for _ in range(5)]
    assert len(calls) <= 3
    assert "embed_failed" in outcomes[-1].state.degraded
    assert "embed_timeout" not in outcomes[-1].state.degraded


@pytest.mark.parametrize("preset", TUNED)
def test_a_search_in_time_is_the_same_with_and_without_threads(find, preset):
    outcome = find(preset)
    assert not [it for it in outcome.state.degraded if "timeout" in it or "late" in it]


def test_every_section_of_a_report_gets_hits_and_passages_within_the_whole_time(numbers, over, monkeypatch):
    save_section_set(SECTIONS, actor=numbers.alice)
    late = Late(lambda: over.wait(60))
    monkeypatch.setattr(runtime, "reranker", lambda: late)
    started = time.perf_counter()
    evidence = gather(EvidenceRequest(section_set="audit", budget_seconds=4.0), principal=numbers.principal("bob"))
    assert time.perf_counter() - started <= 4.4
    assert [bool(it.outcome.hits and it.outcome.passages) for it in evidence.sections] == [True, True]
    # The first section's wait may leave the second one no time to ask.
    said = [{"rerank_timeout", "rerank_budget"} & set(it.outcome.state.degraded) for it in evidence.sections]
    assert said[0] == {"rerank_timeout"}
    assert said[1]


def test_other_ways_to_put_a_question_share_its_time(numbers, over):
    late = Late(lambda: over.wait(60))
    request = SearchRequest(text=QUERY, preset="helix", variants=("deployctl rollback", "drain the queue"))
    started = time.perf_counter()
    outcome = search(request, principal=numbers.principal("bob"), resources=replace(runtime.resources(), reranker=late))
    assert time.perf_counter() - started <= 3.3 * SECONDS
    assert outcome.hits, outcome.state.degraded
    assert outcome.passages


class TestJudge:
    """A language model that judges, late."""

    @pytest.fixture
    def llm(self):
        with FakeLLM() as running:
            running.first_seconds, running.drip_seconds = 60, 0.2
            yield running

    @pytest.fixture
    def model(self, db, llm):  # noqa: ARG002 -- the row needs the database
        return LanguageModel.objects.create(
            slug="m", name="M", base_url=llm.url, model="fake-small", is_default=True, max_retries=0
        )

    @pytest.mark.usefixtures("model")
    @pytest.mark.parametrize("fault", [Fault.SLOW_FIRST, Fault.SLOW_HEADERS, Fault.SLOW_DRIP, Fault.ENDLESS])
    def test_one_that_is_late_leaves_hits_and_passages(self, find, llm, fault):
        llm.fault = fault
        llm.says(json.dumps({"results": []}) + " words" * 200)
        outcome = find("contextpack")
        assert llm.requests
        assert {"relevance_timeout", "relevance_failed"} & set(outcome.state.degraded)

    @pytest.mark.usefixtures("model")
    def test_so_does_a_reranker_that_stands_in_and_is_late_too(self, find, llm, over):
        llm.fault = Fault.SLOW_HEADERS
        late = Late(lambda: over.wait(60))
        outcome = find("contextpack", reranker=late)
        assert late.calls == 1
        assert {"relevance_timeout", "rerank_timeout"} <= set(outcome.state.degraded)


def test_an_answer_comes_with_its_passages_where_the_model_never_comes_back(numbers, over, settings):
    encoder = LateEncoder()
    encoder.wait = lambda: over.wait(60)
    encoder.encode_documents = lambda _: over.wait(60)
    resources = replace(runtime.resources(), encoder=encoder, reranker=Late(lambda: over.wait(60)))
    request = SearchRequest(text="deployctl rollback")
    outcome = search(request, principal=numbers.principal("bob"), resources=resources)
    done = answered(prepare(outcome, numbers.principal("bob")))
    assert outcome.passages
    assert done.citations
