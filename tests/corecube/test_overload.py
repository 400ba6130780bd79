"""Waiting requests are counted, and too many of them refused."""

import asyncio
import json

import pytest

from corecube.overload import OverloadGuard, WaitingRequests, mark_started


def served(waiting, application, scope_type="http"):
    """Serve one request, and return what it sent."""
    sent = []

    async def send(message):
        sent.append(message["type"])

    asyncio.run(waiting.wrap(application)({"type": scope_type}, None, send))
    return sent


def test_a_request_waits_until_the_first_byte_of_its_answer():
    waiting, seen = WaitingRequests(), []

    async def application(scope, receive, send):
        seen.append(waiting.count)
        await send({"type": "http.response.start"})
        seen.append(waiting.count)
        await send({"type": "http.response.body"})

    assert served(waiting, application) == ["http.response.start", "http.response.body"]
    assert seen == [1, 0]
    assert waiting.count == 0


def test_one_that_has_had_its_turn_waits_no_more_though_it_takes_long():
    waiting, seen = WaitingRequests(), []

    async def application(scope, receive, send):
        # As a view does, in a thread of its own.
        await asyncio.to_thread(mark_started)
        seen.append(waiting.count)
        await send({"type": "http.response.start"})

    served(waiting, application)
    assert seen == [0]
    assert waiting.count == 0


def test_one_that_fails_is_not_counted_for_ever():
    waiting = WaitingRequests()

    async def application(scope, receive, send):
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        served(waiting, application)
    assert waiting.count == 0


def test_only_requests_are_counted():
    waiting, seen = WaitingRequests(), []

    async def application(scope, receive, send):
        seen.append(waiting.count)

    served(waiting, application, "lifespan")
    assert seen == [0]


def test_outside_of_a_request_nothing_has_begun():
    mark_started()


def guarded(waiting, path, *, connections=2, kind="http"):
    """Return what a request is sent, while this number of requests waits."""
    guard, sent = OverloadGuard(lambda: waiting), []

    async def application(scope, receive, send):
        await send("served")

    async def send(message):
        sent.append(message)

    asyncio.run(guard.wrap(application, connections=connections)({"type": kind, "path": path}, None, send))
    return sent, guard.refused


@pytest.mark.parametrize("path", ["/api/v1/search", "/v1/chat/completions", "/mcp"])
def test_a_program_is_told_to_come_again(path):
    (start, body), refused = guarded(5, path)
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    assert (start["status"], headers["retry-after"], refused) == (429, "5", 1)
    assert len(headers["x-request-id"]) == 32
    assert len(body["body"]) == int(headers["content-length"])
    assert json.loads(body["body"])["error"]["code"] == "overloaded"


@pytest.mark.parametrize(("waiting", "path"), [(4, "/api/v1/search"), (50, "/chat/"), (50, "/healthz"), (0, "/mcp")])
def test_others_are_let_in(waiting, path):
    assert guarded(waiting, path) == (["served"], 0)


def test_only_requests_are_refused():
    assert guarded(50, "/api/", kind="lifespan") == (["served"], 0)
