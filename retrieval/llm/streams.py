"""Asynchronous streams: an event loop in a background thread, and heartbeats.

Connections belong to the loop that opened them. Requests run on many loops, some only for one request: connections
that outlive a request belong to the background loop.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any, TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Ended:
    error: Exception | None = None


class BackgroundLoop:
    """An event loop in a thread that starts with the first use; thread-safe."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, work: Coroutine[Any, Any, object]) -> None:
        """Start some work without waiting for it."""
        asyncio.run_coroutine_threadsafe(work, self._started())

    async def result(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Return the result of the work; cancelling this cancels the work."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._started()))

    async def stream(self, items: Callable[[], AsyncGenerator[_T, None]]) -> AsyncGenerator[_T, None]:
        """Yield the iterator's items from the background loop, and raise its error; closing this closes it."""
        here = asyncio.get_running_loop()
        arrived: asyncio.Queue[_T | _Ended] = asyncio.Queue()

        async def pass_on(item: _T | _Ended) -> None:
            # The reader's loop may have ended.
            with contextlib.suppress(RuntimeError):
                here.call_soon_threadsafe(arrived.put_nowait, item)

        work = asyncio.run_coroutine_threadsafe(_pump(items, pass_on), self._started())
        try:
            while not isinstance(item := await arrived.get(), _Ended):
                yield item
            if item.error is not None:
                raise item.error
        finally:
            work.cancel()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                Thread(target=self._loop.run_forever, name=self._name, daemon=True).start()
            return self._loop


async def _pump(
    items: Callable[[], AsyncGenerator[_T, None]], pass_on: Callable[[_T | _Ended], Awaitable[None]]
) -> None:
    try:
        # Closes it at once when cancelled, not at garbage collection.
        async with contextlib.aclosing(items()) as iterator:
            async for item in iterator:
                await pass_on(item)
        await pass_on(_Ended())
    except Exception as error:  # noqa: BLE001 -- raised again where it is read
        await pass_on(_Ended(error))


async def with_heartbeats(events: AsyncGenerator[_T, None], seconds: float) -> AsyncGenerator[_T | None, None]:
    """Yield the events, one ahead at most, and None after `seconds` without one. Closing it closes the events."""
    queue: asyncio.Queue[_T | _Ended] = asyncio.Queue(maxsize=1)
    pump = asyncio.create_task(_pump(lambda: events, queue.put))
    try:
        while not isinstance(event := await _next(queue, seconds), _Ended):
            yield event
        if event.error is not None:
            raise event.error
    finally:
        pump.cancel()
        await asyncio.wait({pump})


async def _next(queue: asyncio.Queue[_T | _Ended], seconds: float) -> _T | _Ended | None:
    try:
        async with asyncio.timeout(seconds):
            return await queue.get()
    except TimeoutError:
        return None
