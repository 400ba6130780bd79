"""The HTTP client under a language model: no proxy, no redirect, no header too many, and an end to everything."""

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
_KEPT_CONNECTIONS: Final = 20
_MAX_BYTES: Final = 32 * 2**20
_FIRST_FAULT: Final = 400
#: What is sent; everything else, such as what the SDK tells about this machine, is left out.
_HEADERS: Final = frozenset(
    {"host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent"}
)
_KEY_HEADERS: Final = frozenset({"authorization", "api-key"})


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one answer may take: all of it, and until it says anything."""

    #: When it must be over, by the loop's clock.
    ends_at: float
    first: asyncio.Timeout
    silence_seconds: float


#: Of the request at work.
patience: Final[ContextVar[Patience]] = ContextVar("patience")


def http_client(service: ModelService) -> httpx2.AsyncClient:
    """Return a client for one service; its retries keep to the `patience` of the answer at work."""
    has_key = bool(service.api_key)

    async def sending(request: httpx2.Request) -> None:
        """Leave out what concerns nobody, and wait for a first sign from now on."""
        allowed = _HEADERS | _KEY_HEADERS if has_key else _HEADERS
        for name in [name for name in request.headers if name.lower() not in allowed]:
            del request.headers[name]
        if (limit := patience.get(None)) is not None:
            limit.first.reschedule(asyncio.get_running_loop().time() + limit.silence_seconds)

    return httpx2.AsyncClient(
        verify=httpx2.create_ssl_context(),
        trust_env=False,
        follow_redirects=False,
        headers={"accept-encoding": "identity"},
        timeout=timeouts(service),
        limits=httpx2.Limits(max_connections=_MAX_CONNECTIONS, max_keepalive_connections=_KEPT_CONNECTIONS),
        event_hooks={"request": [sending], "response": [_received]},
    )


def timeouts(service: ModelService) -> httpx2.Timeout:
    """Return how long each step of a request may take; the whole and the silences are limited apart from this."""
    return httpx2.Timeout(service.timeout_seconds, connect=min(service.timeout_seconds, _CONNECT_SECONDS))


async def _received(response: httpx2.Response) -> None:
    """Bound what is read, and try again only where there is time for it."""
    if response.headers.get("content-encoding", "identity") != "identity":
        # It could unpack to any size.
        raise AnswerGarbageError("The service answered compressed, which was not asked for.")
    response.stream = _Bounded(response.stream)
    limit = patience.get(None)
    if limit is None or response.status_code < _FIRST_FAULT:
        return
    wait = retry_after(response.headers.get("retry-after", ""), now=datetime.now(UTC))
    now = asyncio.get_running_loop().time()
    if (wait if wait is not None else 0.0) >= limit.ends_at - now:
        response.headers["x-should-retry"] = "false"
    limit.first.reschedule(None)


class _Bounded(httpx2.AsyncByteStream):
    """A body that fails when it grows beyond the limit."""

    def __init__(self, inner: object) -> None:
        if not isinstance(inner, httpx2.AsyncByteStream):
            raise TypeError
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._inner:
            size += len(part)
            if size > _MAX_BYTES:
                raise AnswerGarbageError(f"The service answered with more than {_MAX_BYTES} bytes.")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()
