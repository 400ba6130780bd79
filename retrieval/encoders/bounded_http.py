"""An HTTP client with limits on the total time and the size of a response."""

import asyncio
import json
import math
from collections.abc import Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Thread
from typing import Any, Final, TypeVar

import httpx2

from corecube.errors import CoreCubeError

_Read = TypeVar("_Read")

_CONNECT_SECONDS: Final = 2.0
_MAX_ANSWER_BYTES: Final = 4 * 2**20
_GRACE_SECONDS: Final = 0.25  #: Additional wait for a request to end after its time limit.
_OK: Final = 200
_FIRST_SERVER_FAULT: Final = 500
#: Client errors after which a retry may succeed: too slow, too early, too many.
_RETRYABLE: Final = frozenset({408, 425, 429})


class ServiceFaultError(CoreCubeError):
    """A request to a service failed; the message follows the service's name."""

    def __init__(self, message: str, *, status: int | None = None, retry_after_seconds: float | None = None) -> None:
        self.status_received = status  #: Status of a response other than 200; None without such a response.
        self.retry_after_seconds = retry_after_seconds  #: The wait that the service requests; None without one.
        super().__init__(message)

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may succeed later."""
        status = self.status_received
        return status is None or status in _RETRYABLE or status >= _FIRST_SERVER_FAULT


class ServiceTimeoutError(ServiceFaultError):
    """The service took too long."""

    def __init__(self) -> None:
        super().__init__("did not answer in time")


class AnswerTooLargeError(ServiceFaultError):
    """The service's answer is beyond the limit."""

    @property
    def is_retryable(self) -> bool:
        """False: the response would be the same."""
        return False


class BoundedClient:
    """Posts JSON from any thread. Connections are reused, redirects are not followed.

    The requests run on an event loop in a separate thread: a blocking client limits only single reads, so that a slow
    service could delay a search without limit.
    """

    def __init__(self, api_key: str = "", *, max_answer_bytes: int = _MAX_ANSWER_BYTES) -> None:
        # A compressed response could decompress to any size.
        fixed = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json"}
        key = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._max_answer_bytes = max_answer_bytes
        self._client = httpx2.AsyncClient(headers={**key, **fixed}, follow_redirects=False)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="bounded-http", daemon=True)
        self._thread.start()

    def post(self, url: str, body: bytes, *, timeout_seconds: float) -> bytes:
        """Return the body of the response.

        Raises ServiceTimeoutError after the time limit, AnswerTooLargeError for a body above the limit (4 MiB by
        default), ServiceFaultError for an unreachable service or another status than 200. Errors contain nothing that
        was sent or received.
        """
        future = asyncio.run_coroutine_threadsafe(self._post(url, body, timeout_seconds), self._loop)
        try:
            return future.result(timeout_seconds + _GRACE_SECONDS)
        except TimeoutError as error:
            future.cancel()
            raise ServiceTimeoutError from error

    def close(self) -> None:
        """Close the connections and end the thread; the client cannot be used afterwards."""
        asyncio.run_coroutine_threadsafe(self._client.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _post(self, url: str, body: bytes, timeout_seconds: float) -> bytes:
        limits = httpx2.Timeout(timeout_seconds, connect=min(timeout_seconds, _CONNECT_SECONDS))
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._exchange(url, body, limits)
        except (TimeoutError, httpx2.TimeoutException):
            raise ServiceTimeoutError from None
        except httpx2.HTTPError as error:
            raise ServiceFaultError(f"cannot be reached ({type(error).__name__})") from None

    async def _exchange(self, url: str, body: bytes, limits: httpx2.Timeout) -> bytes:
        async with self._client.stream("POST", url, content=body, timeout=limits) as response:
            if response.status_code != _OK:
                raise ServiceFaultError(
                    f"answered with status {response.status_code}",
                    status=response.status_code,
                    retry_after_seconds=retry_after(response.headers.get("retry-after", ""), now=datetime.now(UTC)),
                )
            content = bytearray()
            async with aclosing(response.aiter_raw()) as parts:
                async for part in parts:
                    content += part
                    if len(content) > self._max_answer_bytes:
                        raise AnswerTooLargeError(f"answered with more than {self._max_answer_bytes} bytes")
            return bytes(content)


def parsed(content: bytes, *, invalid: Callable[[str], CoreCubeError]) -> Any:  # noqa: ANN401 -- any JSON
    """Return the JSON of a response; raise the error that `invalid` returns for a reason, without its cause."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        # The message of the cause contains the response.
        raise invalid("it is not JSON") from None


def in_order(
    rows: object,
    read: Callable[[Mapping[str, Any]], _Read],
    noun: str,
    *,
    count: int,
    invalid: Callable[[str], CoreCubeError],
) -> list[_Read]:
    """Return what each text's row has, in the texts' order; raise what `invalid` returns unless each has one row."""
    if not isinstance(rows, list):
        raise invalid(f"it has no list of {noun}s")
    found: dict[int, _Read] = {}
    for row in rows:
        index = row.get("index") if isinstance(row, dict) else None
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count or index in found:
            raise invalid(f"a {noun} belongs to none of the {count} texts, or is its second")
        found[index] = read(row)
    if len(found) != count:
        raise invalid(f"{len(found)} {noun}s for {count} texts")
    return [found[index] for index in range(count)]


def retry_after(header: str, *, now: datetime) -> float | None:
    """Return the seconds of a Retry-After header (RFC 9110, section 10.2.3), at least 0; None for an invalid one."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except ValueError:
            return None
        seconds = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None
