"""Turning programs away before anything is done for them, while too many requests are unanswered already."""

import json
import uuid
from collections.abc import Callable
from typing import Any, Final

from corecube.arrivals import Application, Receive, Send, arrivals
from corecube.errors import OverloadedError

#: Requests that may be unanswered at once, for each database connection of the process.
_PER_CONNECTION: Final = 2
_RETRY_SECONDS: Final = 5
_PREFIXES: Final = ("/api/", "/v1/", "/mcp")


class Door:
    """Refuses requests of programs while more than so many wait; what people see is let in."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        self._waiting = waiting
        #: Requests that were refused.
        self.refused = 0

    def before(self, application: Application, *, connections: int) -> Application:
        """Return the application behind this door, for a process with so many database connections."""
        limit = _PER_CONNECTION * connections

        async def guarded(scope: dict[str, Any], receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or self._waiting() <= limit or not scope["path"].startswith(_PREFIXES):
                await application(scope, receive, send)
                return
            self.refused += 1
            await _refuse(send)

        return guarded


async def _refuse(send: Send) -> None:
    from corecube.api import error_body  # noqa: PLC0415 -- the door stands before Django is ready

    error = OverloadedError(reason="door", retry_after_seconds=_RETRY_SECONDS)
    body = json.dumps(error_body(str(error), status=error.status, code=error.code)).encode()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "retry-after": str(error.retry_after_seconds),
        "x-request-id": uuid.uuid4().hex,
    }
    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": sent})
    await send({"type": "http.response.body", "body": body})


door: Final = Door(lambda: arrivals.waiting)
