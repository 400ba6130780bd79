"""Embedding services, asked over real sockets."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from corecube.errors import ConfigError
from retrieval.encoders.bounded_http import retry_after
from retrieval.encoders.embed_services import EmbedService
from retrieval.encoders.remote_encoder import RemoteEncoder, delay_seconds, requests
from retrieval.encoders.tokenizer import ModelTokenizer
from retrieval.errors import EncoderError, EncoderUnavailableError
from tests.fakes import HashEncoder

SERVICE = EmbedService(kind="openai", model="m-large", dim=4, timeout_seconds=2.0, query_timeout_seconds=0.3)
HASH = HashEncoder(dim=4)


@pytest.fixture
def server(rerank_server):
    """Return a service that answers with HashEncoder's vectors, as lists, twice their unit length, in reverse."""

    def answer(out, body):
        vectors = 2 * HASH.encode_documents(body["input"])
        rows = [{"index": place, "embedding": encoded(vector, body)} for place, vector in enumerate(vectors)]
        give(out, {"data": rows[::-1]})

    rerank_server.answer = answer
    return rerank_server


def encoded(vector, body):
    as_text = body.get("encoding_format") == "base64"
    return base64.b64encode(vector.astype("<f4").tobytes()).decode() if as_text else vector.tolist()


def give(out, body, *, status="200 OK", headers=()):
    content = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", *headers]
    out.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)


@pytest.fixture
def slept():
    return []


@pytest.fixture
def make(server, slept, tmp_path, make_tokenizer):
    """Return a function that makes an encoder of the server, with the service's fields changed as asked."""
    made = []
    make_tokenizer(tmp_path / "tokenizer.json")

    def make(**changes):
        service = replace(SERVICE, **({"url": server.url} | changes))
        tokenizer = ModelTokenizer(tmp_path / "tokenizer.json", max_tokens=service.max_tokens)
        made.append(RemoteEncoder(service, tokenizer, sleep=slept.append))
        return made[-1]

    yield make
    for encoder in made:
        encoder.close()


def bodies(server):
    return [body for _, _, body in server.requests]


def test_openai_is_asked_as_it_wants_to_be(make, server):
    encoder = make(api_key="sesame", shorten="service", query_model="m-small")
    assert np.allclose(encoder.encode_query("alpha beta"), HASH.encode_query("alpha beta"), atol=1e-6)
    assert np.allclose(encoder.encode_documents(["a", "b"]), HASH.encode_documents(["a", "b"]), atol=1e-6)
    query, documents = bodies(server)
    assert query == {"model": "m-small", "input": ["alpha beta"], "dimensions": 4, "encoding_format": "base64"}
    assert documents == {"model": "m-large", "input": ["a", "b"], "dimensions": 4, "encoding_format": "base64"}
    assert server.requests[0][1]["authorization"] == "bearer sesame"


def test_voyage_is_asked_as_it_wants_to_be(make, server):
    encoder = make(kind="voyage", shorten="service", base64=False)
    encoder.encode_query("q")
    encoder.encode_documents(["d"])
    assert bodies(server) == [
        {"model": "m-large", "input": ["q"], "output_dimension": 4, "input_type": "query"},
        {"model": "m-large", "input": ["d"], "output_dimension": 4, "input_type": "document"},
    ]


def test_longer_vectors_are_cut_only_where_that_is_configured(make):
    with pytest.raises(EncoderError, match="4 dimensions instead of 3"):
        make(dim=3).encode_query("alpha")
    whole = HASH.encode_query("alpha")
    short = make(dim=3, shorten="here").encode_query("alpha")
    assert np.allclose(short, whole[:3] / np.linalg.norm(whole[:3]), atol=1e-6)


def test_requests_keep_to_texts_and_tokens():
    assert requests([5, 5, 5, 5], max_texts=3, max_tokens=100) == [(0, 3), (3, 4)]
    assert requests([50, 60, 10, 200, 1], max_texts=9, max_tokens=100) == [(0, 1), (1, 3), (3, 4), (4, 5)]
    assert requests([], max_texts=3, max_tokens=100) == []


def test_many_documents_go_in_several_requests(make, server):
    texts = ["alpha", "beta beta", "query", "alpha alpha alpha"]
    found = make(batch_texts=2).encode_documents(texts)
    assert np.allclose(found, HASH.encode_documents(texts), atol=1e-6)
    assert [body["input"] for body in bodies(server)] == [texts[:2], texts[2:]]


def test_a_text_beyond_the_limit_is_cut_and_an_empty_one_is_a_blank(make, server):
    make(max_tokens=3).encode_documents(["alpha beta query alpha", ""])
    assert bodies(server)[0]["input"] == ["alpha beta query", " "]


def test_what_passes_is_tried_again(make, server, slept):
    works, failures = server.answer, iter(["503 Unavailable", "429 Too Many Requests", "500 Oops"])

    def answer(out, body):
        status = next(failures, None)
        give(
            out, {}, status=status, headers=["Retry-After: 7"] if status and "429" in status else []
        ) if status else works(out, body)

    server.answer = answer
    assert make().encode_documents(["a"]).shape == (1, 4)
    waits = [seconds for seconds in slept if seconds]
    assert len(waits) == 3
    assert waits[0] < 0.5
    assert 7 <= waits[1] <= 7.5
    assert waits[2] < 2


def test_after_the_last_try_it_is_unavailable(make, server, slept):
    server.give({}, status="503 Unavailable")
    with pytest.raises(EncoderUnavailableError, match="status 503"):
        make(attempts=3).encode_documents(["a"])
    assert len(server.requests) == 3


def test_a_service_that_asks_for_an_hour_is_not_waited_for(make, server, slept):
    server.give({}, status="429 Too Many Requests", headers=["Retry-After: 3600"])
    with pytest.raises(EncoderUnavailableError):
        make().encode_documents(["a"])
    assert len(server.requests) == 1
    assert not any(slept)


@pytest.mark.parametrize(("status", "words"), [("401 No", "refuses the API key"), ("400 Bad", "status 400")])
def test_what_does_not_pass_is_not_tried_again(make, server, status, words):
    server.give({"error": "secret text"}, status=status)
    with pytest.raises(EncoderError, match=words) as caught:
        make().encode_documents(["a"])
    assert not isinstance(caught.value, EncoderUnavailableError)
    assert "secret" not in str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        [],
        {"data": "x"},
        {"data": []},
        {"data": [{"index": 1, "embedding": [1, 0, 0, 0]}]},
        {"data": [{"index": True, "embedding": [1, 0, 0, 0]}]},
        {"data": [{"index": 0, "embedding": [1, 0, 0, 0]}] * 2},
        {"data": [{"index": 0, "embedding": [[1, 0, 0, 0]]}]},
        {"data": [{"index": 0, "embedding": [1, 0, 0, True]}]},
        {"data": [{"index": 0, "embedding": [1, 0, 0, None]}]},
        {"data": [{"index": 0, "embedding": [0, 0, 0, 0]}]},
        {"data": [{"index": 0, "embedding": [1, 0, 0, 10**400]}]},
        {"data": [{"index": 0, "embedding": "****"}]},
        {"data": [{"index": 0, "embedding": "AAA="}]},
        {"data": [{"index": 0, "embedding": base64.b64encode(np.full(4, np.nan, "<f4").tobytes()).decode()}]},
    ],
)
def test_garbage_is_an_error_that_repeats_nothing(make, server, body):
    server.give(body)
    with pytest.raises(EncoderError, match="invalid response"):
        make().encode_query("alpha")


def test_a_query_has_one_try_within_its_time_and_a_dead_service_is_left_alone(make, server):
    server.answer = lambda *_: server.over.wait(5)
    encoder = make()
    for _ in range(3):
        with pytest.raises(EncoderUnavailableError, match="did not answer in time"):
            encoder.encode_query("alpha")
    with pytest.raises(EncoderUnavailableError, match="paused"):
        encoder.encode_query("alpha")
    assert len(server.requests) == 3


def test_documents_wait_for_the_rate_and_queries_do_not(make, slept):
    encoder = make(requests_per_minute=60, batch_texts=1)
    encoder.encode_documents(["a"] * 12)
    assert [round(seconds) for seconds in slept] == [0] * 10 + [1, 2]
    encoder.encode_query("a")
    assert len(slept) == 12


def test_tokens_count_for_the_rate(make, slept):
    # 6 tokens a minute is one in ten seconds, and one at once.
    make(tokens_per_minute=6).encode_documents(["alpha beta query"])
    assert round(slept[0]) == 20


@pytest.mark.parametrize("changes", [{"kind": "other"}, {"model": ""}, {"dim": 0}])
def test_what_is_missing_is_said(changes):
    with pytest.raises(ConfigError):
        replace(SERVICE, **changes)


def test_the_key_is_in_no_repr():
    assert "sesame" not in repr(replace(SERVICE, api_key="sesame"))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("-3", 0.0),
        ("Fri, 20 Nov 2026 12:00:30 GMT", 30.0),
        ("Fri, 20 Nov 2026 11:00:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(header, seconds):
    assert retry_after(header, now=datetime(2026, 11, 20, 12, tzinfo=UTC)) == seconds


def test_delays_double_up_to_half_a_minute():
    assert max(delay_seconds(1, requested=None) for _ in range(200)) <= 0.5
    assert max(delay_seconds(20, requested=None) for _ in range(200)) <= 30
    assert 5 <= delay_seconds(9, requested=5.0) <= 5.5
