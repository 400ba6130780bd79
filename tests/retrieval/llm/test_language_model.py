"""A language model asked over real HTTP, with every fault that a service can have."""

import asyncio
import logging
import time
from contextlib import aclosing
from dataclasses import replace

import pytest

from retrieval.encoders.breaker import CircuitBreaker
from retrieval.errors import (
    AnswerBreakerOpenError,
    AnswerFormatError,
    AnswerGarbageError,
    AnswerRateLimitedError,
    AnswerRefusedError,
    AnswerRejectedError,
    AnswerTimeoutError,
    AnswerUnavailableError,
)
from retrieval.llm.language_model import ModelClient
from retrieval.llm.service import Api, Dialect, ModelService
from retrieval.llm.types import Options
from tests.fake_llm import FakeLLM, Fault

MESSAGES = [{"role": "system", "content": "Cite."}, {"role": "user", "content": "zanzibar passphrase"}]
PATIENT = CircuitBreaker(failures=10**6)


@pytest.fixture
def llm():
    with FakeLLM() as fake:
        yield fake


@pytest.fixture
def client(llm):
    made = []

    def make(**more):
        service = ModelService(
            **{
                "name": "Fake",
                "base_url": llm.url,
                "model": "fake-small",
                "api_key": "hush-key",
                "max_retries": 0,
                "timeout_seconds": 5.0,
                "silence_seconds": 2.0,
                **more,
            }
        )
        made.append(ModelClient(service, breaker=CircuitBreaker(failures=10**6)))
        return made[-1]

    yield make
    for it in made:
        it.close()


@pytest.mark.parametrize(("finish", "cut"), [("stop", None), *[(it, it) for it in ("length", "content_filter")]])
def test_an_answer_that_was_cut_says_so(llm, client, finish, cut):
    llm.finish = finish

    async def read():
        async with aclosing(client().stream(MESSAGES)) as pieces:
            return [piece async for piece in pieces]

    pieces = asyncio.run(read())
    assert "".join(piece.text for piece in pieces).endswith("Q-4711 [1].")
    assert [piece.cut for piece in pieces if piece.cut] == [cut] * (cut is not None)


def said(client, messages=MESSAGES):
    """Return the whole text, and the usage that the service told."""

    async def read():
        return [piece async for piece in client.stream(messages)]

    pieces = asyncio.run(read())
    return "".join(piece.text for piece in pieces), next((it.usage for it in pieces if it.usage), None)


def test_an_answer_is_streamed_with_its_usage(llm, client):
    llm.says("Four minutes [1].")
    text, usage = said(client())
    assert text == "Four minutes [1]."
    assert (usage.prompt, usage.completion, usage.is_estimated) == (3, 3, False)
    body = llm.requests[0]
    assert body["messages"] == MESSAGES
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("fake-small", 1024, 0.1)


def test_pieces_come_as_they_are_written(llm, client):
    llm.fault, llm.drip_seconds = Fault.SLOW_DRIP, 0.1
    llm.says("one two three four five")

    async def times():
        started = time.monotonic()
        return [time.monotonic() - started async for piece in client().stream(MESSAGES) if piece.text]

    moments = asyncio.run(times())
    assert len(moments) == 5
    assert moments[0] < 0.4
    assert moments[-1] - moments[0] > 0.3


def test_only_what_is_needed_is_sent(llm, client, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "a-project")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Custom: yes")
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-environment")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    said(client())
    said(client(api_key=""))
    with_key, without = llm.headers
    assert with_key["authorization"] == "Bearer hush-key"
    assert "authorization" not in without
    allowed = {"host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent"}
    assert set(without) <= allowed
    assert with_key["accept-encoding"] == "identity"


def test_azure_is_asked_in_its_own_way(llm, client):
    text, usage = said(client(api=Api.AZURE, base_url=llm.root, api_version="2025-01-01", model="our-deployment"))
    assert text
    assert usage
    assert llm.paths == ["/openai/deployments/our-deployment/chat/completions"]
    assert llm.headers[0]["api-key"] == "hush-key"


def test_connections_are_kept_between_requests_on_different_loops(llm, client):
    shared = client()
    for _ in range(5):
        said(shared)
    assert llm.connections == 1


def test_many_streams_run_at_once(llm, client):
    llm.fault, llm.drip_seconds = Fault.SLOW_DRIP, 0.05
    shared = client()

    async def all_of_them():
        async def one():
            return "".join([piece.text async for piece in shared.stream(MESSAGES)])

        return await asyncio.gather(*(one() for _ in range(50)))

    started = time.monotonic()
    assert len(set(asyncio.run(all_of_them()))) == 1
    assert time.monotonic() - started < 5
    assert llm.max_at_once > 20


FAULTS = [
    (Fault.ERROR, AnswerUnavailableError, "500"),
    (Fault.OVERLOADED, AnswerUnavailableError, "503"),
    (Fault.RATE_LIMITED, AnswerRateLimitedError, "429"),
    (Fault.UNAUTHORIZED, AnswerRefusedError, "API key"),
    (Fault.NO_MODEL, AnswerRefusedError, "does not exist there"),
    (Fault.BAD_REQUEST, AnswerRejectedError, "400"),
    (Fault.CUT, AnswerUnavailableError, "closed the connection"),
    (Fault.CUT_QUIETLY, AnswerUnavailableError, "closed the connection"),
    (Fault.ERROR_EVENT, AnswerUnavailableError, "failed during"),
    (Fault.NOT_HTTP, AnswerUnavailableError, "cannot be reached"),
    (Fault.HANGS_UP, AnswerUnavailableError, "cannot be reached"),
    (Fault.GARBAGE, AnswerGarbageError, "is invalid"),
    (Fault.WRONG_SHAPE, AnswerGarbageError, "is invalid"),
    (Fault.WRONG_TYPE, AnswerGarbageError, "has no text"),
    (Fault.EMPTY_CHOICES, AnswerGarbageError, "has no text"),
    (Fault.SILENT, AnswerGarbageError, "has no text"),
    (Fault.REASONS_ONLY, AnswerGarbageError, "has no text"),
    (Fault.FILTERED, AnswerRejectedError, "content filter"),
    (Fault.REDIRECT, AnswerRefusedError, "not allowed"),
    (Fault.ENDLESS, AnswerGarbageError, "more than"),
]


@pytest.mark.parametrize(("fault", "error", "words"), FAULTS)
def test_every_fault_is_an_error_of_our_own(llm, client, caplog, fault, error, words):
    llm.fault = fault
    caplog.set_level(logging.DEBUG)
    with pytest.raises(error, match=words) as caught:
        said(client())
    assert type(caught.value) is error
    told = f"{caught.value!r} {caught.value.__cause__!r} {caplog.text}"
    assert not any(secret in told for secret in ("hush-key", "zanzibar", "CUDA", "four minutes"))


def test_a_redirect_is_not_followed(llm, client):
    with FakeLLM() as other:
        llm.fault, llm.location = Fault.REDIRECT, f"{other.url}/chat/completions"
        with pytest.raises(AnswerRefusedError):
            said(client())
        assert other.requests == []


def test_nobody_at_the_address(client):
    with pytest.raises(AnswerUnavailableError, match="cannot be reached"):
        said(client(base_url="http://127.0.0.1:9/v1"))
    with pytest.raises(AnswerUnavailableError, match="cannot be reached"):
        said(client(base_url="http://no-such-host.invalid/v1"))


@pytest.mark.parametrize("fault", [Fault.SLOW_FIRST, Fault.SLOW_HEADERS])
def test_a_silent_model_is_given_up(llm, client, fault):
    llm.fault = fault
    started = time.monotonic()
    with pytest.raises(AnswerTimeoutError):
        said(client(silence_seconds=0.3, max_retries=2))
    assert time.monotonic() - started < 2
    assert len(llm.requests) == 1


def test_the_whole_answer_has_a_time(llm, client):
    llm.fault = Fault.SLOW_DRIP
    llm.says("word " * 100)
    started = time.monotonic()
    with pytest.raises(AnswerTimeoutError):
        said(client(timeout_seconds=1.0))
    assert 0.8 < time.monotonic() - started < 2


@pytest.mark.parametrize("fault", [Fault.ERROR, Fault.OVERLOADED, Fault.HANGS_UP])
def test_what_may_pass_is_tried_again(llm, client, fault):
    llm.then(fault)
    text, _ = said(client(max_retries=2))
    assert "[1]" in text
    assert len(llm.requests) == 2


def test_retry_after_is_honoured_within_the_time(llm, client):
    llm.then(Fault.RATE_LIMITED)
    started = time.monotonic()
    said(client(max_retries=2))
    assert time.monotonic() - started > 0.9
    llm.retry_after = "60"
    llm.then(Fault.RATE_LIMITED)
    started = time.monotonic()
    with pytest.raises(AnswerRateLimitedError):
        said(client(max_retries=2))
    assert time.monotonic() - started < 0.9


def test_a_refusal_is_not_tried_again(llm, client):
    llm.fault = Fault.UNAUTHORIZED
    with pytest.raises(AnswerRefusedError):
        said(client(max_retries=3))
    assert len(llm.requests) == 1


def test_nothing_is_tried_again_after_the_first_words(llm, client):
    llm.fault = Fault.CUT
    with pytest.raises(AnswerUnavailableError):
        said(client(max_retries=3))
    assert len(llm.requests) == 1


def test_a_service_without_usage_still_answers(llm, client):
    llm.fault = Fault.NO_USAGE
    text, usage = said(client())
    assert text
    assert usage is None


@pytest.mark.parametrize(
    ("fault", "missing"),
    [
        (Fault.NO_STREAM_OPTIONS, "stream_options"),
        (Fault.NO_MAX_TOKENS, "max_tokens"),
        (Fault.NO_TEMPERATURE, "temperature"),
    ],
)
def test_what_a_service_refuses_is_left_out_from_then_on(llm, client, fault, missing):
    llm.fault = fault
    shared = client()
    assert said(shared)[0]
    assert said(shared)[0]
    assert [missing in body for body in llm.requests] == [True, False, False]


def test_a_prompt_that_is_too_long_costs_no_usage_later(llm, client):
    shared = client()
    llm.fault = Fault.BAD_REQUEST
    with pytest.raises(AnswerRefusedError):
        said(shared)
    llm.fault = Fault.NONE
    assert said(shared)[1] is not None


def test_what_is_complained_of_goes_first():
    dialect = Dialect()
    assert dialect.without("'max_tokens' is not supported").tokens_field == "max_completion_tokens"
    assert not dialect.without("Only temperature 1").sets_temperature
    assert not dialect.without("extra fields").asks_usage
    assert replace(dialect, asks_usage=False).without("too long") is None


ASKED = Options(temperature=0.7, max_tokens=12, stop=("END", "STOP"), seed=7)


def pieces_of(client, options):
    async def read():
        return [piece async for piece in client.stream(MESSAGES, options)]

    return asyncio.run(read())


def test_what_a_request_sets_is_sent(llm, client):
    pieces_of(client(), ASKED)
    (body,) = llm.requests
    assert (body["temperature"], body["max_tokens"], body["stop"], body["seed"]) == (0.7, 12, ["END", "STOP"], 7)


@pytest.mark.parametrize(
    ("fault", "name", "sent"),
    [
        (Fault.NO_SEED, "", {"random_seed": 7, "stop": ["END", "STOP"]}),
        (Fault.NO_RANDOM_SEED, "seed", {"stop": ["END", "STOP"]}),
        (Fault.NO_STOP, "stop", {"seed": 7}),
        (Fault.NO_TEMPERATURE, "temperature", {"seed": 7, "stop": ["END", "STOP"]}),
    ],
)
def test_what_a_service_does_not_support_is_left_out_and_named(llm, client, fault, name, sent):
    llm.fault = fault
    shared = client()
    for _ in range(2):
        notices = [piece.notice for piece in pieces_of(shared, ASKED) if piece.notice]
        assert [name in it.text for it in notices] == ([True] if name else [])
    body = llm.requests[-1]
    assert {it: body[it] for it in ("seed", "random_seed", "stop") if it in body} == sent


@pytest.mark.parametrize(
    ("address", "key", "named"),
    [
        ("https://api.anthropic.com/v1", "sk-a", True),
        ("https://api.anthropic.com/v1", "", False),
        ("https://api.anthropic.com.example.org/v1", "sk-a", False),
    ],
)
def test_only_anthropic_gets_the_headers_of_its_list(address, key, named):
    headers = ModelService(name="A", base_url=address, model="m", api_key=key).list_headers
    assert headers == ({"x-api-key": key, "anthropic-version": "2023-06-01"} if named else {})


def test_a_required_format_is_never_left_out(llm, client):
    llm.refused_format = True
    shared = client()
    options = Options(response_format={"type": "json_object"})
    assert shared.can_answer_in(options)
    for _ in range(2):
        with pytest.raises(AnswerFormatError):
            pieces_of(shared, options)
    # The second time nothing is sent.
    assert len(llm.requests) == 1
    assert not shared.can_answer_in(options)
    assert shared.can_answer_in(Options(response_format={"type": "json_schema"}))
    assert pieces_of(shared, replace(options, is_format_optional=True))


def test_a_reader_who_leaves_ends_the_request(llm, client):
    llm.fault, llm.drip_seconds = Fault.SLOW_DRIP, 0.05
    llm.says("word " * 200)
    shared = client()

    async def leave():
        async with aclosing(shared.stream(MESSAGES)) as pieces:
            async for piece in pieces:
                if piece.text:
                    break

    asyncio.run(leave())
    until = time.monotonic() + 3
    while not llm.cut_off and time.monotonic() < until:
        time.sleep(0.02)
    assert llm.cut_off == 1


def test_a_cancelled_task_ends_the_request(llm, client):
    llm.fault = Fault.SLOW_FIRST

    async def cancel():
        task = asyncio.create_task(anext(client().stream(MESSAGES)))
        await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(cancel())
    until = time.monotonic() + 3
    while llm.at_once and time.monotonic() < until:
        time.sleep(0.02)
    assert llm.at_once == 0


def test_a_model_that_fails_is_paused_for_a_while(llm, clock):
    service = ModelService(name="Fake", base_url=llm.url, model="fake-small", max_retries=0)
    shared = ModelClient(
        service, breaker=CircuitBreaker(clock=clock, refusal=lambda: AnswerBreakerOpenError("Fake is left alone."))
    )
    llm.fault = Fault.ERROR
    for _ in range(3):
        with pytest.raises(AnswerUnavailableError):
            said(shared)
    with pytest.raises(AnswerBreakerOpenError):
        said(shared)
    assert len(llm.requests) == 3
    assert shared.is_paused
    clock.now += 31
    llm.fault = Fault.NONE
    assert said(shared)[0]
    assert not shared.is_paused
    shared.close()


def test_refusals_and_leaving_readers_do_not_count_as_failures(llm):
    shared = ModelClient(ModelService(name="Fake", base_url=llm.url, model="fake-small", max_retries=0))
    llm.fault = Fault.UNAUTHORIZED
    for _ in range(5):
        with pytest.raises(AnswerRefusedError):
            said(shared)
    assert not shared.is_paused
    shared.close()


def test_the_models_of_a_service(llm, client):
    assert asyncio.run(client().models()) == ("fake-large", "fake-small")
    llm.fault = Fault.UNAUTHORIZED
    with pytest.raises(AnswerRefusedError):
        asyncio.run(client().models())


def test_a_closed_client_lets_what_is_being_said_be_finished(llm, client):
    llm.fault, llm.drip_seconds = Fault.SLOW_DRIP, 0.05
    shared = client()

    async def read():
        text = ""
        async for piece in shared.stream(MESSAGES):
            shared.close()
            text += piece.text
        return text

    assert "Q-4711" in asyncio.run(read())
