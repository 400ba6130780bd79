"""A chat completion as server-sent events."""

import asyncio
import json
from contextlib import aclosing

import pytest
from asgiref.sync import async_to_sync

from corecube.access import Principal
from corecube.errors import UnavailableError
from retrieval.answers.answering import Answering
from retrieval.api.openai.answer import Chat
from retrieval.api.openai.completion import ChatFormat
from retrieval.api.openai.streaming import event_stream
from retrieval.encoders.vector_cache import SentenceEncoder
from retrieval.llm.types import Route, TokenUsage
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.fakes import HashEncoder, ScriptedProvider


def chat_of(world, provider):
    """Return a chat in which a provider answers from Alice's passages."""
    principal = Principal(world.alice)
    answering = Answering(
        outcome=search(SearchRequest(text="rollback"), principal=principal),
        principal=principal,
        route=Route((provider,)),
        encoder=HashEncoder(),
        sentences=SentenceEncoder(HashEncoder()),
        question="rollback",
    )
    return Chat(answering=answering, absolute=lambda path: f"http://x{path}", created=1)


@pytest.fixture
def stream(world):
    """Return a function that streams a scripted answer over Alice's passages, and returns the raw events."""

    def run(*steps, wants_usage=False, keep_alive_seconds=10.0):
        chat = chat_of(world, ScriptedProvider(*steps))

        async def read():
            events = event_stream(
                chat, ChatFormat(chat, wants_usage=wants_usage), keep_alive_seconds=keep_alive_seconds
            )
            return [event.decode() async for event in events]

        return async_to_sync(read)()

    return run


def data(events):
    return [json.loads(event.removeprefix("data: ")) for event in events if event.startswith("data: {")]


def deltas(events):
    return [chunk["choices"][0]["delta"] for chunk in data(events) if chunk["choices"]]


def text(events):
    return "".join(delta.get("content", "") for delta in deltas(events))


def test_the_order_is_role_content_finish_done(stream):
    events = stream("Run it [1].\n")
    assert deltas(events)[0] == {"role": "assistant", "content": ""}
    assert deltas(events)[-1] == {}
    assert [chunk["choices"][0]["finish_reason"] for chunk in data(events)][-1] == "stop"
    assert events[-1] == "data: [DONE]\n\n"
    assert text(events) == "Run it [1].\n"


def test_every_chunk_has_the_same_id(stream):
    assert len({chunk["id"] for chunk in data(stream("a ", "b ", "c"))}) == 1


def test_a_marker_is_never_cut(stream):
    events = stream("Run it [", "1", "] now")
    assert [delta["content"] for delta in deltas(events) if delta.get("content")] == ["Run it", " [1] now"]


def test_a_source_is_announced_once_when_it_is_first_cited(stream):
    events = stream("One [1]. ", "Two [2]. ", "Again [1]. ", "Not one [9].")
    announced = [delta["annotations"] for delta in deltas(events) if "annotations" in delta]
    spans = [(it["url_citation"]["start_index"], it["url_citation"]["end_index"]) for run in announced for it in run]
    assert [text(events)[start:end] for start, end in spans] == ["[1]", "[2]"]
    kinds = ["annotations" if "annotations" in delta else "content" for delta in deltas(events)[1:-1]]
    assert kinds == ["content", "annotations", "content", "annotations", "content", "content", "content"]


def test_the_finish_chunk_has_the_citations(stream):
    finish = data(stream("Yes [2]."))[-1]
    assert [result["cited"] for result in finish["search_results"]][:2] == [False, True]
    assert len(finish["citations"]) == len(finish["search_results"])
    assert finish["corecube"]["provider"] == "scripted"


def test_usage_comes_last_and_only_when_wanted(stream):
    without, wanted = data(stream("Yes [1].")), data(stream("Yes [1].", wants_usage=True))
    assert all("usage" not in chunk for chunk in without)
    assert [chunk["usage"] for chunk in wanted[:-1]] == [None] * (len(wanted) - 1)
    assert wanted[-1]["choices"] == []
    assert wanted[-1]["usage"]["completion_tokens"] == 5


def test_silence_is_bridged_with_comments(stream):
    events = stream("a", 0.2, "b", keep_alive_seconds=0.02)
    assert ": keep-alive\n\n" in events
    assert text(events) == "ab"


def test_a_known_failure_ends_the_stream_with_its_error(stream):
    events = stream("Half a sen", UnavailableError("The model server is down."))
    assert data(events)[-1] == {
        "error": {"message": "The model server is down.", "type": "server_error", "param": None, "code": "unavailable"}
    }
    assert "[DONE]" not in events[-1]


def test_an_unknown_failure_does_not_say_what_it_was(stream):
    error = data(stream("Half", ValueError("secret detail")))[-1]["error"]
    assert (error["code"], error["type"]) == ("internal_error", "server_error")
    assert "secret" not in error["message"]


def test_markers_are_sent_in_one_form_and_annotated_where_they_stand(stream):
    events = stream("Run it \u30102\u3011, then [", "1, 9] wait")
    assert text(events) == "Run it [2], then [1] wait"
    found = [it["url_citation"] for delta in deltas(events) for it in delta.get("annotations", ())]
    assert [text(events)[it["start_index"] : it["end_index"]] for it in found] == ["[2]", "[1]"]
    assert data(events)[-1]["corecube"]["removed_citations"] == 1


def test_the_services_own_usage_is_handed_on(stream):
    *_, finish, last = data(stream("Yes [1].", TokenUsage(812, 4), wants_usage=True))
    assert last["usage"] == {"prompt_tokens": 812, "completion_tokens": 4, "total_tokens": 816}
    assert not finish["corecube"]["usage_is_estimated"]


def test_what_no_passage_supports_is_told_in_the_finish_chunk(stream):
    (found,) = data(stream("The rollback cost 99 crowns [1]."))[-1]["corecube"]["unsupported"]
    assert found.keys() == {"start", "end", "reason", "explanation"}
    assert (found["start"], found["end"], found["reason"]) == (0, 32, "number")


def test_a_failure_before_the_first_word_is_an_error_event_too(stream):
    events = stream(UnavailableError("The model server is down."))
    assert data(events)[-1]["error"]["code"] == "unavailable"
    assert not [event for event in events if "[DONE]" in event]


def test_a_reader_who_leaves_stops_the_provider(world):
    provider = ScriptedProvider("One ", 60.0, "two")
    chat = chat_of(world, provider)

    async def leave():
        async with aclosing(event_stream(chat, ChatFormat(chat))) as events:
            await anext(events)
            await anext(events)
        return len(asyncio.all_tasks())

    left = async_to_sync(leave)()
    assert (provider.begun, provider.ended, left) == (1, 1, 1)
