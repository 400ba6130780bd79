"""Noticing that nothing is said for a while. Free of Django."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _End:
    error: Exception | None = None


async def with_heartbeats(events: AsyncGenerator[_T, None], seconds: float) -> AsyncGenerator[_T | None, None]:
    """Yield the events, and None whenever none has come for `seconds`. Closing it closes the events at once.

    The events run in one task of their own, at most one event ahead.
    """
    queue: asyncio.Queue[_T | _End] = asyncio.Queue(maxsize=1)
    pump = asyncio.create_task(_pump(events, queue))
    try:
        while not isinstance(event := await _next(queue, seconds), _End):
            yield event
        if event.error is not None:
            raise event.error
    finally:
        pump.cancel()
        await asyncio.wait({pump})


async def _next(queue: asyncio.Queue[_T | _End], seconds: float) -> _T | _End | None:
    try:
        async with asyncio.timeout(seconds):
            return await queue.get()
    except TimeoutError:
        return None


async def _pump(events: AsyncGenerator[_T, None], queue: asyncio.Queue[_T | _End]) -> None:
    try:
        async with aclosing(events):
            async for event in events:
                await queue.put(event)
        await queue.put(_End())
    except Exception as error:  # noqa: BLE001 -- raised again where the events are read
        await queue.put(_End(error))
