"""Overload protection: counts requests that wait for processing, and refuses API requests while too many wait."""

import json
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from threading import Lock
from typing import Any, Final

from corecube.errors import OverloadedError, error_body
from corecube.logs import request_id

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

_PER_CONNECTION: Final = 2  #: Limit of waiting requests for each database connection of the process.
_RETRY_SECONDS: Final = 5
API_PREFIXES: Final = ("/api/", "/v1/", "/mcp")


class WaitingRequests:
    """Counts HTTP requests from arrival until `mark_started`, or the first byte of the response; thread-safe."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = Lock()

    def wrap(self, application: Application) -> Application:
        """Return an ASGI application whose requests are counted."""

        async def counting(scope: dict[str, Any], receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await application(scope, receive, send)
                return
            request = _WaitingRequest(self)

            async def sending(message: Message) -> None:
                request.end()
                await send(message)

            token = _current.set(request)
            try:
                await application(scope, receive, sending)
            finally:
                request.end()
                _current.reset(token)

        return counting

    def add(self, change: int) -> None:
        """Add to the count."""
        with self._lock:
            self.count += change


class _WaitingRequest:
    def __init__(self, counter: WaitingRequests) -> None:
        self._counter = counter
        self._is_over = False
        counter.add(1)

    def end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._counter.add(-1)


_current: Final = ContextVar[_WaitingRequest | None]("waiting_request", default=None)

waiting_requests: Final = WaitingRequests()


def mark_started() -> None:
    """Stop counting the current request as waiting."""
    if (request := _current.get()) is not None:
        request.end()


class OverloadGuard:
    """Refuses API requests while too many requests wait; pages are always served."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        self._waiting = waiting
        self.refused = 0

    def wrap(self, application: Application, *, connections: int) -> Application:
        """Return the guarded application of a process with this number of database connections."""
        limit = _PER_CONNECTION * connections

        async def guarded(scope: dict[str, Any], receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or self._waiting() <= limit or not scope["path"].startswith(API_PREFIXES):
                await application(scope, receive, send)
                return
            self.refused += 1
            await _refuse(scope, send)

        return guarded


async def _refuse(scope: Mapping[str, Any], send: Send) -> None:
    error = OverloadedError(reason="door", retry_after_seconds=_RETRY_SECONDS)
    body = json.dumps(error_body(str(error), status=error.status, code=error.code)).encode()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "retry-after": str(error.retry_after_seconds),
        "x-request-id": scope.get("request_id") or request_id(),
    }
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


overload_guard: Final = OverloadGuard(lambda: waiting_requests.count)
