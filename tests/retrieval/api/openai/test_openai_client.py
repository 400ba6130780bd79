"""The stock client against a real ASGI server."""

import asyncio
import time
from datetime import timedelta

import openai
import pytest
from django.utils import timezone

from corecube.models import ApiKey
from retrieval.presets.catalog import PRESETS


def question(text):
    return {"model": "corecube", "messages": [{"role": "user", "content": text}]}


def test_it_lists_models(connect, world):
    client = connect(world.key("bob"))
    assert [model.id for model in client.models.list()] == list(PRESETS)
    assert client.models.retrieve("corecube").owned_by == "corecube"


def test_it_answers_with_citations(connect, world):
    answer = connect(world.key("bob")).chat.completions.create(**question("rollback staging database"))
    message = answer.choices[0].message
    cited = message.annotations[0].url_citation
    assert message.content[cited.start_index : cited.end_index] == "[1]"
    assert "Run deployctl rollback before touching the staging database. [1]" in message.content
    assert cited.title == "Rolling back"
    assert cited.url == answer.citations[0]
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.corecube["preset"] == "corecube"
    assert answer._request_id


def test_it_streams_the_same_answer(connect, world):
    client = connect(world.key("bob"))
    whole = client.chat.completions.create(**question("rollback staging database"))
    options = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(client.chat.completions.create(**question("rollback staging database"), **options))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage


def test_an_unknown_key_is_an_authentication_error(connect):
    with pytest.raises(openai.AuthenticationError) as caught:
        connect("cc_wrong").models.list()
    assert caught.value.code == "invalid_api_key"


def test_an_unknown_model_is_a_not_found_error(connect, world):
    with pytest.raises(openai.NotFoundError) as caught:
        connect(world.key("bob")).chat.completions.create(**{**question("rollback"), "model": "gpt-4o"})
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


def test_more_than_one_choice_is_a_bad_request_error(connect, world):
    with pytest.raises(openai.BadRequestError) as caught:
        connect(world.key("bob")).chat.completions.create(**question("rollback"), n=2)
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", "n")


def test_a_refusal_before_a_stream_has_its_status(connect, world):
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        connect(world.key("bob")).chat.completions.create(**question(" "), stream=True)
    assert caught.value.code == "empty_query"


def test_a_client_does_not_retry_what_is_refused_for_good(connect, world):
    with pytest.raises(openai.NotFoundError) as caught:
        connect(world.key("bob")).with_options(max_retries=2).models.retrieve("gpt-4o")
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert caught.value.response.headers["x-request-id"]


def test_a_model_out_of_a_keys_reach_is_not_found_either(connect, world):
    secret = world.key("bob")
    ApiKey.objects.update(presets=["none"])
    client = connect(secret)
    assert not list(client.models.list())
    for call in (
        client.models.retrieve,
        lambda name: client.chat.completions.create(**{**question("a"), "model": name}),
    ):
        with pytest.raises(openai.NotFoundError):
            call("corecube")


def test_too_many_requests_are_a_rate_limit_error_that_says_when(connect, world):
    secret = world.key("bob")
    ApiKey.objects.update(requests_per_minute=1)
    client = connect(secret)
    client.models.list()
    with pytest.raises(openai.RateLimitError) as caught:
        client.models.list()
    assert caught.value.code == "rate_limit_exceeded"
    assert 50 <= int(caught.value.response.headers["retry-after"]) <= 60


def test_a_client_waits_as_long_as_it_is_told_and_tries_again(connect, world):
    secret = world.key("bob")
    # A request a second, and all of this minute's are sent.
    ApiKey.objects.update(requests_per_minute=60, paced_until=timezone.now() + timedelta(seconds=60))
    began = time.monotonic()
    assert list(connect(secret).with_options(max_retries=3).models.list())
    assert time.monotonic() - began >= 0.9


def test_the_answer_says_who_wrote_it_and_counts_its_tokens_itself(connect, world):
    answer = connect(world.key("bob")).chat.completions.create(**question("rollback staging database"))
    assert (answer.corecube["provider"], answer.corecube["usage_is_estimated"]) == ("extractive", True)
    assert answer.choices[0].finish_reason == "stop"
    assert answer.id.startswith("chatcmpl-")


def test_nothing_found_is_an_answer_and_no_error(connect, world):
    answer = connect(world.key("charlie")).chat.completions.create(**question("rollback staging database"))
    assert answer.choices[0].message.annotations == []
    assert answer.citations == []


def test_the_asynchronous_client_streams_many_at_once(world, server):
    secret = world.key("bob")

    async def run():
        async with openai.AsyncOpenAI(base_url=f"{server}/v1", api_key=secret, max_retries=0) as client:

            async def text():
                chunks = await client.chat.completions.create(**question("rollback staging database"), stream=True)
                return "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])

            return await asyncio.gather(*(text() for _ in range(8)))

    texts = asyncio.run(run())
    assert len(set(texts)) == 1
    assert "Run deployctl rollback" in texts[0]


def test_nobody_at_the_address_is_a_connection_error(world):
    with (
        openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="x", max_retries=1) as client,
        pytest.raises(openai.APIConnectionError),
    ):
        client.models.list()
