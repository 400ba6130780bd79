"""The stock client while the language model behind the answers fails: an answer or a clear error, and never a wait."""

import asyncio
import time
from contextlib import suppress

import openai
import pytest

from retrieval.models import LanguageModel, Usage
from retrieval.presets.catalog import PRESETS
from tests.fake_llm import FakeLLM, Fault

#: Faults before the first word: the extractive answerer takes over.
BEFORE = [
    *(Fault.ERROR, Fault.OVERLOADED, Fault.RATE_LIMITED, Fault.UNAUTHORIZED, Fault.NO_MODEL, Fault.BAD_REQUEST),
    *(Fault.SLOW_FIRST, Fault.SLOW_HEADERS, Fault.HANGS_UP, Fault.REDIRECT),
    *(Fault.NOT_HTTP, Fault.GARBAGE, Fault.WRONG_SHAPE, Fault.WRONG_TYPE, Fault.EMPTY_CHOICES, Fault.SILENT),
    *(Fault.REASONS_ONLY, Fault.FILTERED),
]
#: Faults after it: what was said stands, and an error ends it.
AFTER = [Fault.CUT, Fault.CUT_QUIETLY, Fault.ERROR_EVENT]
QUESTION = {"model": "corecube", "messages": [{"role": "user", "content": "rollback staging database"}]}
QUOTED = "Run deployctl rollback before touching the staging database. [1]"


@pytest.fixture
def llm():
    with FakeLLM() as fake:
        fake.says("It takes four minutes [1]. Ask the release captain [2].")
        yield fake


@pytest.fixture
def model(world, llm):
    """Return the language model that answers by default: it may be silent for 0.6 s and is asked once."""
    return LanguageModel.objects.create(
        slug="ours",
        name="Ours",
        base_url=llm.url,
        model="fake-small",
        timeout_seconds=5,
        silence_seconds=0.6,
        max_retries=0,
        is_default=True,
    )


@pytest.fixture
def client(world, server, model):
    with openai.OpenAI(base_url=f"{server}/v1", api_key=world.key("bob"), max_retries=0, timeout=20) as made:
        yield made


def streamed(client):
    """Return a stream's text and its finish chunk."""
    chunks = list(client.chat.completions.create(**QUESTION, stream=True))
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks), chunks[-1]


def words(chunks):
    """Yield what a stream's chunks say."""
    for chunk in chunks:
        yield chunk.choices[0].delta.content or ""


def become(model, fault):
    """Let the language model have a fault, and be known for nothing that it did before."""
    model.model = f"fault:{fault}"
    model.save()


def until(condition):
    """Wait until something holds, 10 s at the most."""
    ends = time.monotonic() + 10
    while not condition() and time.monotonic() < ends:
        time.sleep(0.01)
    return condition()


def test_without_a_fault_the_language_model_answers(client, llm):
    answer = client.chat.completions.create(**QUESTION)
    assert answer.choices[0].message.content == "It takes four minutes [1]. Ask the release captain [2]."
    assert answer.corecube["provider"] == "ours"
    assert not answer.corecube["notices"]
    text, finish = streamed(client)
    assert text == answer.choices[0].message.content
    assert finish.corecube["provider"] == "ours"
    assert until(lambda: Usage.objects.count() == 2)
    assert llm.at_once == 0


def test_before_the_first_word_the_extractive_answerer_takes_over(client, llm, model):
    for fault in BEFORE:
        become(model, fault)
        text, finish = streamed(client)
        assert QUOTED in text, fault
        assert (finish.choices[0].finish_reason, finish.corecube["provider"]) == ("stop", "extractive")
        assert [notice["code"] for notice in finish.corecube["notices"]] == ["fell_back"], fault
    assert until(lambda: llm.at_once == 0)


def test_so_it_does_for_an_answer_in_one_piece(client, model):
    for fault in (Fault.ERROR, Fault.RATE_LIMITED, Fault.SLOW_FIRST, Fault.GARBAGE):
        become(model, fault)
        answer = client.chat.completions.create(**QUESTION)
        assert QUOTED in answer.choices[0].message.content
        assert (answer.corecube["provider"], answer.corecube["degraded"]) == ("extractive", ["fell_back"])


def test_after_the_first_word_a_stream_ends_in_an_api_error(client, model):
    for fault in AFTER:
        become(model, fault)
        said = []
        with pytest.raises(openai.APIError) as caught:
            said.extend(words(client.chat.completions.create(**QUESTION, stream=True)))
        assert "".join(said).startswith("It")
        assert not isinstance(caught.value, openai.APIStatusError)
        assert caught.value.code.startswith("answer_")
        assert "CUDA" not in str(caught.value)


def test_after_the_first_word_an_answer_in_one_piece_is_written_by_the_next(client, model):
    for fault in AFTER:
        become(model, fault)
        answer = client.chat.completions.create(**QUESTION)
        assert answer.corecube["provider"] == "extractive"
        assert "fell_back" in answer.corecube["degraded"]
        assert QUOTED in answer.choices[0].message.content


@pytest.mark.parametrize(("finish", "code"), [("length", "cut_short"), ("content_filter", "content_filtered")])
def test_an_answer_that_was_cut_says_so(client, llm, finish, code):
    llm.finish = finish
    answer = client.chat.completions.create(**QUESTION)
    assert (answer.choices[0].finish_reason, answer.corecube["degraded"]) == (finish, [code])
    *_, last = client.chat.completions.create(**QUESTION, stream=True)
    assert (last.choices[0].finish_reason, last.corecube["degraded"]) == (finish, [code])


def test_a_model_that_fails_again_and_again_is_not_asked_for_a_while(client, llm):
    llm.fault = Fault.ERROR
    for _ in range(5):
        assert QUOTED in streamed(client)[0]
    assert len(llm.requests) == 3


def test_a_fallback_is_asked_before_the_extractive_answerer(client, llm, model):
    with FakeLLM() as other:
        other.says("Four minutes [1].")
        model.fallback = LanguageModel.objects.create(
            slug="other", name="Other", base_url=other.url, model="fake-large"
        )
        model.save()
        llm.fault = Fault.OVERLOADED
        text, finish = streamed(client)
    assert (text, finish.corecube["provider"]) == ("Four minutes [1].", "other")


def test_a_client_that_waits_no_longer_frees_what_it_asked_for(client, llm, model):
    model.silence_seconds = 30
    model.save()
    llm.fault = Fault.SLOW_FIRST
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=1.0).chat.completions.create(**QUESTION)
    assert until(lambda: llm.at_once == 0)


def test_a_client_that_leaves_a_stream_ends_the_request_behind_it(client, llm):
    llm.fault = Fault.SLOW_DRIP
    llm.says("word " * 500)
    with client.chat.completions.create(**QUESTION, stream=True) as chunks:
        for chunk in chunks:
            if chunk.choices[0].delta.content:
                break
    assert until(lambda: llm.at_once == 0)
    assert llm.cut_off == 1


def test_the_asynchronous_client_does_the_same(world, server, model, llm):
    llm.then(Fault.NONE, Fault.NONE, Fault.CUT, Fault.ERROR)

    secret = world.key("bob")

    async def run():
        async with openai.AsyncOpenAI(base_url=f"{server}/v1", api_key=secret, max_retries=0) as client:
            names = [it.id async for it in client.models.list()]
            whole = await client.chat.completions.create(**QUESTION)
            texts = []
            for _ in range(3):
                texts.append("")
                with suppress(openai.APIError):
                    async for chunk in await client.chat.completions.create(**QUESTION, stream=True):
                        texts[-1] += chunk.choices[0].delta.content or ""
            return names, whole.choices[0].message.content, texts

    names, whole, (same, cut, quoted) = asyncio.run(run())
    assert names == list(PRESETS)
    assert same == whole
    assert cut
    assert whole.startswith(cut)
    assert QUOTED in quoted
