"""The stock client against a real ASGI server."""

import openai
import pytest


@pytest.fixture
def connect(world, server):
    """Return a function that makes a client with a key; all are closed in the end."""
    clients = []

    def make(secret):
        clients.append(openai.OpenAI(base_url=f"{server}/v1", api_key=secret, max_retries=0))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def question(text):
    return {"model": "corecube", "messages": [{"role": "user", "content": text}]}


def test_it_lists_models(connect, world):
    client = connect(world.key("bob"))
    assert [model.id for model in client.models.list()] == ["corecube"]
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
