"""Events with their silences."""

import asyncio
from contextlib import aclosing

import pytest

from retrieval.llm.streams import with_heartbeats


class Source:
    """Yields numbers and sleeps through fractions; knows whether it was closed."""

    def __init__(self, *steps):
        self.steps = steps
        self.is_closed = False

    async def events(self):
        try:
            for step in self.steps:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    yield step
        finally:
            self.is_closed = True


def gather(source, seconds=0.02):
    async def read():
        return [event async for event in with_heartbeats(source.events(), seconds)]

    return asyncio.run(read())


def test_events_come_as_they_are():
    assert gather(Source(1, 2, 3)) == [1, 2, 3]


def test_a_silence_is_told_again_and_again():
    events = gather(Source(1, 0.07, 2))
    assert [it for it in events if it] == [1, 2]
    assert events.count(None) >= 2


def test_a_failure_comes_after_the_events_before_it():
    with pytest.raises(ValueError, match="broken"):
        gather(Source(1, ValueError("broken")))


def test_closing_it_closes_the_events_at_once_and_leaves_no_task():
    source = Source(1, 60.0, 2)

    async def leave():
        async with aclosing(with_heartbeats(source.events(), 0.02)) as events:
            assert await anext(events) == 1
            assert await anext(events) is None
        return len(asyncio.all_tasks())

    assert asyncio.run(leave()) == 1
    assert source.is_closed


def test_a_reader_that_is_cancelled_closes_the_events():
    source = Source(1, 60.0)

    async def read():
        async with aclosing(with_heartbeats(source.events(), 10)) as events:
            async for _ in events:
                pass

    async def cancel():
        reading = asyncio.create_task(read())
        await asyncio.sleep(0.02)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        return len(asyncio.all_tasks())

    assert asyncio.run(cancel()) == 1
    assert source.is_closed
