"""Whole searches for a section while something fails: each ends in time, with what it had, and says so.

The times are generous, for a busy machine; what is tested is that nothing waits for what does not come.
"""

import contextlib
import threading
import time
import uuid
from dataclasses import replace

import psycopg
import pytest
from django.db import connection as database

from corecube.access import ScopeRequest
from corecube.models import Compartment, Connection, Grant
from corecube.scope import Sensitivity
from retrieval.encoders.remote_reranker import RemoteReranker, RerankService
from retrieval.engine.state import RequestFilter
from retrieval.errors import SearchTimeoutError
from retrieval.index.bm25.follower import follower
from retrieval.models import SearchRecord
from retrieval.presets.consolidated.evidence.section_reading import shipped
from retrieval.presets.consolidated.evidence.section_state import SectionAsk
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.retrieval.conftest import http_answer
from tests.retrieval.presets.consolidated.stages.sectioned import CrossEncoder

pytestmark = pytest.mark.django_db(transaction=True)

REPORT = shipped("report")
#: It requires spreadsheets, and everything is near enough for it.
SECTION = replace(REPORT.section("facts_and_figures"), score_floor=0.0, quality_floor=0.0)
#: What starting threads and a busy processor may take beside the deadline and a tenth of it.
ALLOWANCE_SECONDS = 1.0
#: What the code of a search that ended before its end begins with.
ENDED_EARLY = ("deadline_exceeded_before_", "soft_cancelled_before_", "timed_out_in_")


@pytest.fixture(autouse=True)
def as_installed(settings):
    """Run the legs side by side, as an installation does."""
    settings.CORECUBE_LEG_THREADS = 4


@pytest.fixture
def stocked(world, sync_once):
    """The shared world with pages and one table more."""
    folder = world.root / "runbooks"
    for number in range(12):
        (folder / f"costs{number}.md").write_text(
            f"# Harbour {number}\n\nThe costs of harbour {number} were settled by the staging crew in year {number}.\n"
        )
    (folder / "costs.csv").write_text("harbour,crowns\n" + "".join(f"port {it},{it * 100}\n" for it in range(4)))
    sync_once(world.runbooks)
    return world


@pytest.fixture
def words(settings, stocked):
    """Return the BM25 index of the shared world's documents."""
    settings.CORECUBE_BM25 = True
    follower().rebuild()


@pytest.fixture
def find(stocked, words):
    """Return a function that searches as Bob and checks that the search ended in time; it gives the outcome."""

    def find(text="costs of the harbour", *, seconds=20.0, reranker=None, section=SECTION, **fields):
        ask = SectionAsk(section_set=REPORT, section=section, seconds=seconds)
        resources = replace(runtime.resources(), reranker=reranker) if reranker else None
        request = SearchRequest(text=text, preset="consolidated", section=ask, **fields)
        started = time.perf_counter()
        outcome = search(request, principal=stocked.principal("bob"), resources=resources)
        assert time.perf_counter() - started < 1.1 * seconds + ALLOWANCE_SECONDS
        assert all(outcome.state.scope.allows(hit.chunk.connection_id) for hit in outcome.hits)
        return outcome

    return find


@pytest.fixture
def make_reranker(rerank_server):
    made = []

    def make():
        # A name of its own: what a process has learned of a reranker outlives a test.
        made.append(RemoteReranker(RerankService(kind="vllm", url=rerank_server.url, model=f"model-{uuid.uuid4()}")))
        return made[-1]

    yield make
    for reranker in made:
        reranker.close()


@contextlib.contextmanager
def held(*tables):
    """Hold a lock on tables that lets nobody read them, from a connection of its own."""
    asked = database.get_connection_params() | {"autocommit": True}
    asked = {name: asked[name] for name in ("host", "port", "dbname", "user", "password") if asked.get(name)}
    with psycopg.connect(**asked) as holder:
        holder.execute(f"LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE")
        yield
        holder.rollback()


def said(outcome):
    """Return the codes of all notes and the names of all events, in the trace as it was stored."""
    spans = SearchRecord.objects.get(pk=outcome.id).trace["spans"]
    return {note["code"] for span in spans for note in span["notes"]} | {
        str(event["event"]) for span in spans for event in span["events"]
    }


def skips(outcome):
    return [it["reason"] for it in outcome.state.events if it["event"] == "cross_encoder_skipped"]


def types(outcome):
    return {hit.chunk.source_type for hit in outcome.hits}


def rows(body):
    return {"results": [{"index": it, "relevance_score": 0.5} for it in range(len(body["documents"]))]}


class TestReranker:
    """Reranking is never fatal: meaning and words order the pool instead."""

    def test_one_that_is_down_is_asked_three_times_and_then_left_alone(self, find, make_reranker, rerank_server):
        rerank_server.give(b"", status="500 Oops")
        reranker = make_reranker()
        outcomes = [find(reranker=reranker) for _ in range(5)]
        assert [skips(it) for it in outcomes] == [["api_error"]] * 3 + [["circuit_breaker"]] * 2
        assert len(rerank_server.requests) == 3
        for outcome in outcomes:
            assert {hit.provider for hit in outcome.hits} == {"semantic_bm25"}
            assert {"markdown", "csv"} <= types(outcome)
            assert outcome.passages

    def test_one_that_is_silent_is_not_waited_for_beyond_the_time(self, find, make_reranker, rerank_server):
        rerank_server.answer = lambda _out, _body: rerank_server.over.wait(60)
        outcome = find(reranker=make_reranker(), seconds=2.5)
        assert skips(outcome) == ["api_error"]
        assert "csv" in types(outcome)
        assert "rerank_timeout" in outcome.state.degraded

    def test_those_that_keep_no_time_limit_hold_no_search(self, find, monkeypatch):
        threads = runtime.RerankThreads(2, thread_name_prefix="stuck")
        monkeypatch.setattr(runtime, "_rerank_executor", lambda **_: threads)
        stuck = CrossEncoder()
        leave = threading.Event()
        stuck.does = lambda _: leave.wait(60)
        found = [find(reranker=stuck, seconds=1.5) for _ in range(5)]
        leave.set()
        threads.shutdown()
        assert all({hit.provider for hit in it.hits} == {"semantic_bm25"} for it in found)
        assert len(stuck.calls) <= 2

    def test_one_that_is_slow_is_skipped_once_its_time_is_known(self, find, make_reranker, rerank_server):
        def slow(out, body):
            time.sleep(4.0)
            out.write(http_answer(rows(body)))

        rerank_server.answer = slow
        reranker = make_reranker()
        found = [find(reranker=reranker, seconds=20.0), find(reranker=reranker, seconds=1.2)]
        assert [skips(it) for it in found] == [[], ["budget"]]
        assert {hit.provider for hit in found[0].hits} == {"cross_encoder"}
        assert {hit.provider for hit in found[1].hits} == {"semantic_bm25"}

    def test_one_that_flaps_falls_back_each_time_it_fails(self, find, make_reranker, rerank_server):
        calls = []

        def flap(out, body):
            calls.append(1)
            status = "200 OK" if len(calls) % 2 else "503 Busy"
            out.write(http_answer(rows(body), status=status))

        rerank_server.answer = flap
        reranker = make_reranker()
        found = [find(reranker=reranker) for _ in range(4)]
        assert [skips(it) for it in found] == [[], ["api_error"], [], ["api_error"]]
        assert all(it.hits and len({hit.provider for hit in it.hits}) == 1 for it in found)


class TestDatabase:
    """A statement that waits for a lock is broken off by its own limit."""

    @pytest.mark.parametrize(
        ("table", "code"),
        [
            ("retrieval_termfrequency", "timed_out_in_analyze"),
            ("retrieval_chunk", "timed_out_in_complete"),
            ("retrieval_document", "setup_timeout"),
        ],
    )
    def test_a_table_that_nobody_can_read_ends_the_search_in_time(self, find, table, code):
        with held(table):
            outcome = find(seconds=2.0)
        assert outcome.hits == ()
        assert code in outcome.state.degraded
        assert code in said(outcome)

    def test_vectors_that_nobody_can_read_leave_what_the_words_found(self, find):
        with held("retrieval_embedding"):
            outcome = find(seconds=3.0)
        assert outcome.hits
        assert outcome.passages
        assert "dense_timeout" in said(outcome)
        assert all("cosine" not in hit.signals for hit in outcome.hits)

    @pytest.mark.parametrize(
        "table", ["corecube_grant", "corecube_connection", "retrieval_embeddingindex", "retrieval_presetversion"]
    )
    def test_what_must_be_known_before_a_search_is_not_waited_for(self, find, table):
        started = time.perf_counter()
        with held(table), pytest.raises(SearchTimeoutError):
            find(seconds=1.0)
        assert time.perf_counter() - started < 1.1 + ALLOWANCE_SECONDS
        assert find(seconds=20.0).hits

    def test_a_trace_that_cannot_be_stored_is_not_waited_for(self, find, caplog):
        with held("retrieval_searchrecord"):
            outcome = find(seconds=2.0)
        assert (outcome.is_recorded, outcome.record_id) == (False, None)
        assert outcome.hits
        assert f"search.unrecorded id={outcome.id}" in caplog.text
        assert not SearchRecord.objects.filter(pk=outcome.id).exists()
        stored = find(seconds=20.0)
        assert stored.record_id == stored.id

    def test_a_lock_that_goes_costs_only_its_time(self, find):
        holding = contextlib.ExitStack()
        holding.enter_context(held("retrieval_embedding"))
        timer = threading.Timer(1.0, holding.close)
        timer.start()
        outcome = find(seconds=20.0)
        timer.join()
        assert {"markdown", "csv"} <= types(outcome)


class TestNothing:
    """Nothing to find is a result."""

    def test_an_empty_compartment_is_not_waited_for(self, find, stocked):
        empty = Compartment.objects.create(slug="empty", name="Empty")
        Grant.objects.create(user=stocked.bob, compartment=empty, clearance=Sensitivity.RESTRICTED)
        folder = stocked.root / "nothing"
        folder.mkdir()
        Connection.objects.create(
            slug="nothing", name="Nothing", kind="folder", config={"path": str(folder)}, compartment=empty
        )
        outcome = find(seconds=5.0, narrowing=ScopeRequest(include=("nothing",)))
        assert outcome.hits == ()
        assert outcome.seconds < 5.0
        assert "recovery_tier_result" not in said(outcome)
        assert "fallback_exhausted" in said(outcome)
        assert {"event": "fallback_exhausted", "tiers": 0, "level": "warning"} in outcome.state.events
        assert outcome.state.degraded == ()

    def test_documents_that_are_not_there_give_way_to_the_scope(self, find):
        asked = RequestFilter(documents=frozenset({uuid.uuid4(), uuid.uuid4()}))
        outcome = find(filter=asked)
        assert outcome.hits
        assert {hit.signals.get("beyond_filter") for hit in outcome.hits} == {1.0}
        assert "csv" in types(outcome)
        assert {"recovery_tier_result", "recovered_pool"} <= said(outcome)


class TestHurry:
    """300 ms is little for a search that may look again."""

    def test_a_deadline_of_300_ms_is_kept(self, find, make_reranker, rerank_server):
        rerank_server.answer = lambda _out, _body: rerank_server.over.wait(60)
        for _ in range(3):
            outcome = find(seconds=0.3, reranker=make_reranker())
            assert outcome.trace
            assert "bm25_unavailable" not in outcome.state.degraded
            assert outcome.hits or [it for it in outcome.state.degraded if it.startswith(ENDED_EARLY)]

    def test_a_pool_that_stays_empty_ends_before_a_wait(self, find):
        outcome = find("zzz", seconds=0.3, filter=RequestFilter(documents=frozenset({uuid.uuid4()})))
        assert outcome.trace


def test_everything_at_once(find, make_reranker, rerank_server):
    rerank_server.answer = lambda _out, _body: rerank_server.over.wait(60)
    reranker = make_reranker()
    asked = RequestFilter(documents=frozenset({uuid.uuid4()}))
    with held("retrieval_embedding", "retrieval_document"):
        for seconds in (0.3, 2.0):
            outcome = find(seconds=seconds, reranker=reranker, filter=asked)
            assert outcome.hits == ()
            assert [it for it in outcome.state.degraded if it.startswith(ENDED_EARLY)]
            assert {*outcome.state.degraded} <= said(outcome)
