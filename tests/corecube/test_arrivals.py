"""Counting the requests whose turn has not come."""

import asyncio

import pytest

from corecube.arrivals import Arrivals, begun


def served(arrivals, application, scope_type="http"):
    """Serve one request, and return what it sent."""
    sent = []

    async def send(message):
        sent.append(message["type"])

    asyncio.run(arrivals.counted(application)({"type": scope_type}, None, send))
    return sent


def test_a_request_waits_until_the_first_byte_of_its_answer():
    arrivals, seen = Arrivals(), []

    async def application(scope, receive, send):
        seen.append(arrivals.waiting)
        await send({"type": "http.response.start"})
        seen.append(arrivals.waiting)
        await send({"type": "http.response.body"})

    assert served(arrivals, application) == ["http.response.start", "http.response.body"]
    assert seen == [1, 0]
    assert arrivals.waiting == 0


def test_one_that_has_had_its_turn_waits_no_more_though_it_takes_long():
    arrivals, seen = Arrivals(), []

    async def application(scope, receive, send):
        # As a view does, in a thread of its own.
        await asyncio.to_thread(begun)
        seen.append(arrivals.waiting)
        await send({"type": "http.response.start"})

    served(arrivals, application)
    assert seen == [0]
    assert arrivals.waiting == 0


def test_one_that_fails_is_not_counted_for_ever():
    arrivals = Arrivals()

    async def application(scope, receive, send):
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        served(arrivals, application)
    assert arrivals.waiting == 0


def test_only_requests_are_counted():
    arrivals, seen = Arrivals(), []

    async def application(scope, receive, send):
        seen.append(arrivals.waiting)

    served(arrivals, application, "lifespan")
    assert seen == [0]


def test_outside_of_a_request_nothing_has_begun():
    begun()
