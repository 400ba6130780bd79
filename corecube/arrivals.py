"""Requests that have come in and whose turn has not come yet: nothing is answered, nothing searched."""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from threading import Lock
from typing import Any, Final

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


class Arrivals:
    """Counts HTTP requests from when they come in until `begun`, or the first byte of their answer; thread-safe."""

    def __init__(self) -> None:
        self.waiting = 0
        self._lock = Lock()

    def counted(self, application: Application) -> Application:
        """Return an ASGI application whose requests are counted."""

        async def counting(scope: dict[str, Any], receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await application(scope, receive, send)
                return
            arrival = _Arrival(self)

            async def sending(message: Message) -> None:
                arrival.end()
                await send(message)

            token = _current.set(arrival)
            try:
                await application(scope, receive, sending)
            finally:
                arrival.end()
                _current.reset(token)

        return counting

    def count(self, change: int) -> None:
        """Count more or fewer."""
        with self._lock:
            self.waiting += change


class _Arrival:
    """One request that is counted."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._is_over = False
        arrivals.count(1)

    def end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._arrivals.count(-1)


_current: Final = ContextVar[_Arrival | None]("arrival", default=None)

arrivals: Final = Arrivals()


def begun() -> None:
    """Say that the request at hand has had its turn: what comes now may take as long as it likes."""
    if (arrival := _current.get()) is not None:
        arrival.end()
