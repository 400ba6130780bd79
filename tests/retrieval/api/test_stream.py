"""A chat completion as server-sent events."""

import json
import time

import pytest
from asgiref.sync import async_to_sync

from corecube.access import Principal
from corecube.errors import UnavailableError
from retrieval.api.completion import Chat
from retrieval.api.stream import event_stream
from retrieval.services import SearchRequest, search


class Scripted:
    """A provider that yields what it is told: text, seconds of silence, or an error to raise."""

    name = "scripted"

    def __init__(self, *steps):
        self.steps = steps

    def complete(self, _task):
        for step in self.steps:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, float):
                time.sleep(step)
            else:
                yield step

    def refuses(self, text):
        return text.startswith("Sorry")


@pytest.fixture
def stream(world):
    """Return a function that streams a scripted answer over Alice's passages, and returns the raw events."""
    outcome = search(SearchRequest(text="rollback"), principal=Principal(world.alice))

    def run(*steps, wants_usage=False, keep_alive_seconds=10.0):
        chat = Chat(outcome=outcome, provider=Scripted(*steps), absolute=lambda path: f"http://x{path}", created=1)

        async def read():
            events = event_stream(chat, wants_usage=wants_usage, keep_alive_seconds=keep_alive_seconds)
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
    assert [delta["content"] for delta in deltas(events) if delta.get("content")] == ["Run it ", "[1] now"]


def test_a_source_is_announced_once_when_it_is_first_cited(stream):
    events = stream("One [1]. ", "Two [2]. ", "Again [1]. ", "Not one [9].")
    announced = [delta["annotations"] for delta in deltas(events) if "annotations" in delta]
    spans = [(it["url_citation"]["start_index"], it["url_citation"]["end_index"]) for run in announced for it in run]
    assert [text(events)[start:end] for start, end in spans] == ["[1]", "[2]"]
    kinds = ["annotations" if "annotations" in delta else "content" for delta in deltas(events)[1:-1]]
    assert kinds == ["content", "annotations", "content", "annotations", "content", "content"]


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
