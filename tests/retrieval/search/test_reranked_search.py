"""Whole searches with a reranker: a real service over HTTP, well and in every way that it can fail."""

from dataclasses import replace

import pytest

from retrieval.encoders.breaker import CircuitBreaker
from retrieval.encoders.remote_reranker import RemoteReranker, RerankService
from retrieval.engine.types import ScoreType
from retrieval.models import SearchRecord
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

pytestmark = pytest.mark.django_db
QUERY = "how do we roll back staging?"


@pytest.fixture
def make_reranker(rerank_server):
    made = []

    def make(**options):
        made.append(RemoteReranker(RerankService(kind="tei", url=rerank_server.url), **options))
        return made[-1]

    yield make
    for reranker in made:
        reranker.close()


@pytest.fixture
def find(world):
    def find(name, reranker, text=QUERY, **fields):
        resources = replace(runtime.resources(), reranker=reranker)
        return search(SearchRequest(text=text, **fields), principal=world.principal(name), resources=resources)

    return find


def order(outcome):
    return [hit.chunk_id for hit in outcome.hits]


def codes(outcome):
    return [note.code for span in outcome.trace for note in span.notes]


def test_a_service_decides_the_order_of_what_was_found(find, make_reranker, rerank_server):
    rerank_server.score(lambda text: 0.95 if "four minutes" in text else 0.1)
    outcome = find("bob", make_reranker())
    first = outcome.hits[0]
    assert "four minutes" in first.chunk.text
    assert (first.score, first.score_type) == (0.95, ScoreType.RELEVANCE)
    assert outcome.state.degraded == ()
    assert set(order(outcome)) == set(order(find("bob", None)))


def hang_up(_out, _body):
    raise ConnectionResetError


FAULTS = {
    "500": lambda server: server.give(b"Oops", status="500 Oops"),
    "redirect": lambda server: server.give([], status="302 Found", headers=["Location: http://127.0.0.1:1/"]),
    "garbage": lambda server: server.give(b"<html>busy</html>"),
    "indices": lambda server: server.give([{"index": 99, "score": 0.5}]),
    "too few": lambda server: server.give([]),
    "nan": lambda server: server.score(lambda _: float("nan")),
    "raw": lambda server: server.score(lambda _: -7.5),
    "huge": lambda server: server.give(b" " * (4 * 2**20 + 1)),
    "no http": lambda server: setattr(server, "answer", lambda out, _: out.write(b"hello\r\n\r\n")),
    "hangs up": lambda server: setattr(server, "answer", hang_up),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_service_that_fails_leaves_the_blends_order_and_is_shown(find, make_reranker, rerank_server, fault):
    FAULTS[fault](rerank_server)
    outcome = find("bob", make_reranker())
    assert len(rerank_server.requests) == 1
    assert order(outcome) == order(find("bob", None))
    assert outcome.hits
    assert {hit.score_type for hit in outcome.hits} == {ScoreType.BLEND}
    assert outcome.state.degraded == ("rerank_failed",)
    assert SearchRecord.objects.get(pk=outcome.id).degraded == ["rerank_failed"]


def drip(server):
    def answer(out, _):
        out.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not server.over.wait(0.05):
            out.write(b" ")

    server.answer = answer


def silence(server):
    server.answer = lambda _out, _body: server.over.wait(30)


@pytest.fixture
def hurried(monkeypatch):
    """Leave a reranker 0.7 seconds of each search."""
    from retrieval.stages import rerank
    from retrieval.stages.rerank import RerankConfig

    call = rerank.Rerank.__call__
    monkeypatch.setattr(
        rerank.Rerank,
        "__call__",
        lambda stage, state: call(replace(stage, config=RerankConfig(reserve_ms=1000)), state),
    )


@pytest.mark.parametrize("slow", [drip, silence])
@pytest.mark.usefixtures("hurried")
def test_a_service_that_is_too_slow_leaves_the_blends_order_within_the_deadline(
    find, make_reranker, rerank_server, slow
):
    slow(rerank_server)
    outcome = find("bob", make_reranker())
    assert order(outcome) == order(find("bob", None))
    assert outcome.passages
    assert outcome.state.degraded == ("rerank_timeout",)
    assert outcome.seconds < 2


def test_a_dead_service_costs_three_searches_and_then_none(find, make_reranker, rerank_server):
    rerank_server.give(b"", status="500 Oops")
    reranker = make_reranker(breaker=CircuitBreaker())
    outcomes = [find("bob", reranker) for _ in range(5)]
    assert [outcome.state.degraded[0] for outcome in outcomes] == ["rerank_failed"] * 3 + ["rerank_breaker_open"] * 2
    assert len(rerank_server.requests) == 3


def test_a_service_is_handed_only_texts_in_scope(find, make_reranker, rerank_server):
    rerank_server.score(lambda _: 0.5)
    for text in ("rollback costs codeword", "stolen passphrase zanzibar", QUERY):
        find("bob", make_reranker(), text)
    sent = str([body for _, _, body in rerank_server.requests])
    assert len(rerank_server.requests) == 3
    assert "deployctl" in sent
    for hidden in ("zanzibar was", "passphrase was", "tangerine", "48,200", "Breach", "Costs"):
        assert hidden not in sent
    find("charlie", make_reranker())
    assert len(rerank_server.requests) == 3


def test_a_service_sees_the_same_whether_or_not_hidden_documents_exist(find, make_reranker, rerank_server, world):
    rerank_server.score(len_score)
    before = find("bob", make_reranker())
    world.vault.delete()
    world.ledger.delete()
    after = find("bob", make_reranker())
    assert rerank_server.requests[0][2] == rerank_server.requests[1][2]
    assert [(hit.chunk_id, hit.score) for hit in before.hits] == [(hit.chunk_id, hit.score) for hit in after.hits]


def len_score(text):
    return 1 / (1 + len(text))


def test_the_installations_service_is_used_and_its_failure_shown_by_the_api(world, client, settings, rerank_server):
    settings.CORECUBE_RERANKER, settings.CORECUBE_RERANKER_KIND = "http", "tei"
    settings.CORECUBE_RERANKER_URL, settings.CORECUBE_RERANKER_API_KEY = rerank_server.url, "hush"
    headers = {"Authorization": f"Bearer {world.key('bob')}"}

    def ask():
        answer = client.post("/api/v1/search", {"query": QUERY}, content_type="application/json", headers=headers)
        assert answer.status_code == 200
        return answer.json()

    rerank_server.score(len_score)
    assert (ask()["hits"][0]["score_type"], ask()["degraded"]) == ("relevance", [])
    rerank_server.give(b"", status="500 Oops")
    answer = ask()
    assert (answer["hits"][0]["score_type"], answer["degraded"]) == ("blend", ["rerank_failed"])
    runtime.reranker().close()


def test_a_model_that_is_not_on_this_machine_leaves_the_blends_order(world, settings, tmp_path):
    settings.CORECUBE_RERANKER, settings.CORECUBE_MODELS_DIR = "absent", tmp_path
    outcome = search(SearchRequest(text=QUERY), principal=world.principal("bob"))
    assert outcome.hits
    assert outcome.state.degraded == ("rerank_failed",)
    assert any("'absent' is not on this machine" in note.text for span in outcome.trace for note in span.notes)


def test_without_a_reranker_nothing_is_degraded(find):
    outcome = find("bob", None)
    assert outcome.state.degraded == ()
    assert "rerank_none" in codes(outcome)
