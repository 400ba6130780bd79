"""Against a real HTTP server, which answers well or does what services do when they fail."""

import logging
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from corecube.errors import ConfigError
from retrieval.encoders.breaker import CircuitBreaker
from retrieval.encoders.remote_reranker import RemoteReranker, RerankService
from retrieval.engine.types import ScoreType
from retrieval.errors import RerankBreakerOpenError, RerankError, RerankTimeoutError

TEXTS = ["the first secret text", "the second secret text"]
ROWS = [{"index": 1, "score": 0.9}, {"index": 0, "score": 0.2}]


@pytest.fixture
def make_reranker(rerank_server):
    made = []

    def make(*, breaker=None, **fields):
        service = RerankService(**({"kind": "tei", "url": rerank_server.url, "api_key": "hush-key"} | fields))
        made.append(RemoteReranker(service, breaker=breaker))
        return made[-1]

    yield make
    for reranker in made:
        reranker.close()


def score(reranker, *, seconds=5.0):
    return reranker.score("the secret query", TEXTS, timeout_seconds=seconds)


def test_a_text_embeddings_inference_server_is_asked_and_understood(rerank_server, make_reranker):
    rerank_server.give(ROWS)
    assert score(make_reranker()) == [0.2, 0.9]
    line, headers, body = rerank_server.requests[0]
    assert line == "POST /rerank HTTP/1.1"
    assert headers["authorization"] == "bearer hush-key"
    assert body == {"query": "the secret query", "texts": TEXTS, "raw_scores": False, "truncate": True}


@pytest.mark.parametrize(
    ("kind", "rows", "asks_for"),
    [
        ("cohere", "results", "top_n"),
        ("jina", "results", "top_n"),
        ("vllm", "results", "top_n"),
        ("voyage", "data", "top_k"),
    ],
)
def test_the_other_services_are_asked_and_understood(rerank_server, make_reranker, kind, rows, asks_for):
    rerank_server.give({rows: [{"index": it["index"], "relevance_score": it["score"]} for it in ROWS]})
    reranker = make_reranker(kind=kind, model="a-model")
    assert score(reranker) == [0.2, 0.9]
    body = rerank_server.requests[0][2]
    assert (body["model"], body["documents"], body[asks_for]) == ("a-model", TEXTS, 2)
    assert (reranker.name, reranker.score_type, reranker.blend_weight) == ("a-model", ScoreType.RELEVANCE, None)


def test_without_a_key_no_header_is_sent(rerank_server, make_reranker):
    rerank_server.give(ROWS)
    score(make_reranker(api_key=""))
    assert "authorization" not in rerank_server.requests[0][1]


@pytest.mark.parametrize("status", ["500 Oops", "503 Busy", "429 Slow down", "401 Who", "404 Where", "204 Nothing"])
def test_another_status_than_200_is_an_error_that_names_it(rerank_server, make_reranker, status):
    rerank_server.give(ROWS, status=status)
    with pytest.raises(RerankError, match=f"status {status[:3]}"):
        score(make_reranker())


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_redirects_are_not_followed(rerank_server, make_reranker, status):
    rerank_server.give(ROWS, status=status, headers=[f"Location: {rerank_server.url}/elsewhere"])
    with pytest.raises(RerankError, match=f"status {status[:3]}"):
        score(make_reranker())
    assert len(rerank_server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"{", b"[" * 100_000, b"\xff\xfe\x00", b'[{"index": 0, "score": NaN}, {"index": 1, "score": 0}]'],
)
def test_an_answer_that_makes_no_sense_is_garbage(rerank_server, make_reranker, body):
    rerank_server.give(body)
    with pytest.raises(RerankError, match="invalid response"):
        score(make_reranker())


def test_an_answer_that_is_no_http_is_an_error(rerank_server, make_reranker):
    rerank_server.answer = lambda out, _: out.write(b"SSH-2.0-OpenSSH\r\n\r\n")
    with pytest.raises(RerankError, match="cannot be reached"):
        score(make_reranker())


def test_an_answer_that_ends_too_soon_is_an_error(rerank_server, make_reranker):
    def cut(out, _):
        out.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[")
        raise OSError

    rerank_server.answer = cut
    with pytest.raises(RerankError, match="cannot be reached"):
        score(make_reranker())


def test_nobody_at_the_address_is_an_error(make_reranker, rerank_server):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(RerankError, match=r"cannot be reached \(ConnectError\)"):
        score(make_reranker(url=f"http://127.0.0.1:{port}/rerank"))


def test_an_endless_answer_is_cut_off(rerank_server, make_reranker):
    sent = []

    def flood(out, _):
        out.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not rerank_server.over.is_set():
            out.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
            sent.append(0x10000)

    rerank_server.answer = flood
    with pytest.raises(RerankError, match="more than 4194304 bytes"):
        score(make_reranker(), seconds=20)
    assert sum(sent) < 32 * 2**20


def test_a_compressed_answer_is_not_unpacked(rerank_server, make_reranker):
    import gzip

    rerank_server.give(gzip.compress(b" " * 50_000_000), headers=["Content-Encoding: gzip"])
    with pytest.raises(RerankError, match="invalid response"):
        score(make_reranker())


def drips(server, head):
    """Return an answer that sends these bytes and then one byte every 50 ms."""

    def drip(out, _):
        out.write(head)
        while not server.over.wait(0.05):
            out.write(b" ")
            out.flush()

    return drip


@pytest.mark.parametrize(
    "head",
    [b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK\r\nX-Slow:", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"],
    ids=["line", "head", "body"],
)
def test_a_slow_drip_ends_with_the_total_time(rerank_server, make_reranker, head):
    rerank_server.answer = drips(rerank_server, head)
    started = time.perf_counter()
    with pytest.raises(RerankTimeoutError):
        score(make_reranker(), seconds=0.4)
    assert 0.35 < time.perf_counter() - started < 2


def test_silence_ends_with_the_total_time(rerank_server, make_reranker):
    rerank_server.answer = lambda _out, _body: rerank_server.over.wait(30)
    started = time.perf_counter()
    with pytest.raises(RerankTimeoutError):
        score(make_reranker(), seconds=0.3)
    assert time.perf_counter() - started < 2


def test_after_three_failures_the_service_is_left_alone_until_its_time_is_over(rerank_server, make_reranker):
    now = [0.0]
    reranker = make_reranker(breaker=CircuitBreaker(clock=lambda: now[0]))
    rerank_server.give(b"", status="500 Oops")
    assert reranker.problem == ""
    for _ in range(3):
        with pytest.raises(RerankError):
            score(reranker)
    with pytest.raises(RerankBreakerOpenError):
        score(reranker)
    assert len(rerank_server.requests) == 3
    assert "failed several times" in reranker.problem
    now[0] = 30
    rerank_server.give(ROWS)
    assert score(reranker) == [0.2, 0.9]
    assert reranker.problem == ""


def test_no_error_and_no_log_repeats_the_key_the_query_or_a_text(rerank_server, make_reranker, caplog):
    caplog.set_level(logging.DEBUG)
    reranker = make_reranker(breaker=CircuitBreaker(failures=99))
    said = [repr(RerankService(kind="tei", url="http://x", api_key="hush-key")), repr(reranker)]
    for body, status in ((b"hush-key secret", "200 OK"), (b"secret hush-key", "500 hush-key"), ([], "200 OK")):
        rerank_server.give(body, status=status)
        with pytest.raises(RerankError) as caught:
            score(reranker)
        error = caught.value
        while error is not None:
            said.append(f"{error!r} {error}")
            error = error.__cause__
    said += [record.getMessage() for record in caplog.records]
    assert "reranking.request_failed" in " ".join(said)
    assert not [line for line in said if "hush-key" in line or "secret" in line]


def test_many_threads_share_it(rerank_server, make_reranker):
    rerank_server.give(ROWS)
    reranker = make_reranker()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: score(reranker), range(24))) == [[0.2, 0.9]] * 24


def test_connections_are_kept(rerank_server, make_reranker):
    rerank_server.give(ROWS)
    connections = []
    handle = rerank_server.process_request
    rerank_server.process_request = lambda request, address: (connections.append(address), handle(request, address))
    reranker = make_reranker()
    for _ in range(5):
        score(reranker)
    assert len(connections) == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "bing"}, "must be one of cohere, jina, tei, vllm, voyage"),
        ({"kind": ""}, "must be one of"),
        ({"kind": "tei"}, "needs its address"),
        ({"kind": "vllm", "model": "m"}, "needs its address"),
        ({"kind": "cohere"}, "needs the name of a model"),
        ({"kind": "vllm", "url": "http://x"}, "needs the name of a model"),
    ],
)
def test_a_service_that_lacks_what_its_kind_needs_is_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        RerankService(**fields)


@pytest.mark.parametrize("kind", ["cohere", "jina", "voyage"])
def test_a_provider_has_an_address_of_its_own(kind):
    assert RerankService(kind=kind, model="m").address.startswith("https://")
    assert RerankService(kind=kind, model="m", url="http://proxy/x").address == "http://proxy/x"


def test_a_time_too_short_for_any_service_does_not_open_the_breaker(rerank_server, make_reranker):
    reranker = make_reranker()
    rerank_server.answer = lambda _out, _body: rerank_server.over.wait(30)
    for _ in range(4):
        with pytest.raises(RerankTimeoutError):
            score(reranker, seconds=0.05)
    rerank_server.give(ROWS)
    assert score(reranker) == [0.2, 0.9]
