"""The HTTP client of language models: no proxies, no redirects, few headers, and limits on time and size."""

import asyncio
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import httpx2

from retrieval.encoders.bounded_http import retry_after
from retrieval.errors import AnswerGarbageError
from retrieval.llm.service import ModelService

_CONNECT_SECONDS: Final = 5.0
_MAX_CONNECTIONS: Final = 200
_MAX_IDLE_CONNECTIONS: Final = 20
_MAX_BYTES: Final = 32 * 2**20
_FIRST_FAULT: Final = 400
#: Allowed headers; all others, such as the SDK's about this machine, are removed.
_HEADERS: Final = frozenset(
    {"host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent"}
)
_KEY_HEADERS: Final = frozenset({"authorization", "api-key", "x-api-key", "anthropic-version"})


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """The time limits of one answer: total, and until the first token."""

    ends_at: float  #: When it must have ended, by the loop's clock.
    first: asyncio.Timeout
    silence_seconds: float


time_limits: Final[ContextVar[TimeLimits]] = ContextVar("time_limits")


def http_client(service: ModelService) -> httpx2.AsyncClient:
    """Return a client for one service; its retries keep the `time_limits` of the current answer."""
    has_key = bool(service.api_key)

    async def sending(request: httpx2.Request) -> None:
        """Remove headers that are not allowed, and start the wait for the first token."""
        allowed = _HEADERS | _KEY_HEADERS if has_key else _HEADERS
        for name in [name for name in request.headers if name.lower() not in allowed]:
            del request.headers[name]
        if (limit := time_limits.get(None)) is not None:
            limit.first.reschedule(asyncio.get_running_loop().time() + limit.silence_seconds)

    return httpx2.AsyncClient(
        verify=httpx2.create_ssl_context(),
        trust_env=False,
        follow_redirects=False,
        headers={"accept-encoding": "identity"},
        timeout=timeouts(service),
        limits=httpx2.Limits(max_connections=_MAX_CONNECTIONS, max_keepalive_connections=_MAX_IDLE_CONNECTIONS),
        event_hooks={"request": [sending], "response": [_received]},
    )


def timeouts(service: ModelService) -> httpx2.Timeout:
    """Return the time limits of each step of a request; the total and the token timeout have separate limits."""
    return httpx2.Timeout(service.timeout_seconds, connect=min(service.timeout_seconds, _CONNECT_SECONDS))


async def _received(response: httpx2.Response) -> None:
    """Limit the size of the response, and allow retries only within the time limit."""
    if response.headers.get("content-encoding", "identity") != "identity":
        # It could decompress to any size.
        raise AnswerGarbageError("The service sent an unsupported compression.")
    response.stream = _Bounded(response.stream)
    limit = time_limits.get(None)
    if limit is None or response.status_code < _FIRST_FAULT:
        return
    wait = retry_after(response.headers.get("retry-after", ""), now=datetime.now(UTC))
    now = asyncio.get_running_loop().time()
    if (wait if wait is not None else 0.0) >= limit.ends_at - now:
        response.headers["x-should-retry"] = "false"
    limit.first.reschedule(None)


class _Bounded(httpx2.AsyncByteStream):
    """A stream that ends with an error when it is too long.

    No generator: one that is abandoned in the middle of a read could not be closed by the garbage collector.
    """

    def __init__(self, inner: object) -> None:
        if not isinstance(inner, httpx2.AsyncByteStream):
            raise TypeError
        self._inner = inner
        self._parts = aiter(inner)
        self._size = 0

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        part = await anext(self._parts)
        self._size += len(part)
        if self._size > _MAX_BYTES:
            raise AnswerGarbageError(f"The service sent more than {_MAX_BYTES} bytes.")
        return part

    async def aclose(self) -> None:
        await self._inner.aclose()
