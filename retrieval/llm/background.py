"""An event loop in a thread of its own, whose iterators can be read from any other loop. No Django.

Connections belong to the loop that opened them. Requests are answered on many loops, some of which live for one
request only: what is kept between requests lives here.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from threading import Lock, Thread
from typing import Any, Final, TypeVar

_T = TypeVar("_T")
_END: Final = object()


class BackgroundLoop:
    """A loop that starts when it is first needed. Safe to share between threads."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, work: Coroutine[Any, Any, object]) -> None:
        """Begin some work, and wait for nothing."""
        asyncio.run_coroutine_threadsafe(work, self._running())

    async def result(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Return what the work returns; being cancelled cancels it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running()))

    async def stream(self, items: Callable[[], AsyncGenerator[_T, None]]) -> AsyncGenerator[_T, None]:
        """Yield what the iterator yields there, and raise what it raises; closing this closes it."""
        here = asyncio.get_running_loop()
        arrived: asyncio.Queue[object] = asyncio.Queue()

        def hand_over(item: object) -> None:
            # The reader's loop may be over.
            with contextlib.suppress(RuntimeError):
                here.call_soon_threadsafe(arrived.put_nowait, item)

        work = asyncio.run_coroutine_threadsafe(_pump(items, hand_over), self._running())
        try:
            while (item := await arrived.get()) is not _END:
                if isinstance(item, _Failure):
                    raise item.error
                yield item  # type: ignore[misc]  # what is neither the end nor a failure is an item
        finally:
            work.cancel()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                Thread(target=self._loop.run_forever, name=self._name, daemon=True).start()
            return self._loop


class _Failure:
    """What an iterator raised."""

    def __init__(self, error: Exception) -> None:
        self.error = error


async def _pump(items: Callable[[], AsyncGenerator[_T, None]], hand_over: Callable[[object], None]) -> None:
    """Hand over every item, and in the end the end or what was raised."""
    try:
        # Being cancelled, it is closed at once and not whenever it is collected.
        async with contextlib.aclosing(items()) as iterator:
            async for item in iterator:
                hand_over(item)
        hand_over(_END)
    except Exception as error:  # noqa: BLE001 -- raised again where it is read
        hand_over(_Failure(error))
