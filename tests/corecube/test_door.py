"""Turning away while too many requests are unanswered."""

import asyncio
import json

import pytest

from corecube.door import Door


def served(waiting, path, *, connections=2, kind="http"):
    """Return what a request is sent, with the door, while so many wait."""
    door, sent = Door(lambda: waiting), []

    async def application(scope, receive, send):
        await send("served")

    async def send(message):
        sent.append(message)

    asyncio.run(door.before(application, connections=connections)({"type": kind, "path": path}, None, send))
    return sent, door.refused


@pytest.mark.parametrize("path", ["/api/v1/search", "/v1/chat/completions", "/mcp"])
def test_a_program_is_told_to_come_again(path):
    (start, body), refused = served(5, path)
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    assert (start["status"], headers["retry-after"], refused) == (429, "5", 1)
    assert len(headers["x-request-id"]) == 32
    assert len(body["body"]) == int(headers["content-length"])
    assert json.loads(body["body"])["error"]["code"] == "overloaded"


@pytest.mark.parametrize(("waiting", "path"), [(4, "/api/v1/search"), (50, "/chat/"), (50, "/healthz"), (0, "/mcp")])
def test_others_are_let_in(waiting, path):
    assert served(waiting, path) == (["served"], 0)


def test_only_requests_are_refused():
    assert served(50, "/api/", kind="lifespan") == (["served"], 0)
