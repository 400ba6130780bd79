"""Asking an HTTP service within one total time and one size, whatever the service does."""

import asyncio
import math
from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Thread
from typing import Final

import httpx2

from corecube.errors import CoreCubeError

_CONNECT_SECONDS: Final = 2.0
_MAX_ANSWER_BYTES: Final = 4 * 2**20
#: How much longer than its time a request may take to be given up.
_GRACE_SECONDS: Final = 0.25
_OK: Final = 200
_FIRST_SERVER_FAULT: Final = 500
#: What a later request may succeed after: too slow, too early, too many.
_PASSING: Final = frozenset({408, 425, 429})


class ServiceFaultError(CoreCubeError):
    """The service did not answer as it should; the message goes on after the service's name."""

    def __init__(self, message: str, *, status: int | None = None, retry_after_seconds: float | None = None) -> None:
        #: Status of an answer other than 200; None when there was no such answer.
        self.status_received = status
        #: How long the service asks to be left alone; None where it does not say.
        self.retry_after_seconds = retry_after_seconds
        super().__init__(message)

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed later."""
        status = self.status_received
        return status is None or status in _PASSING or status >= _FIRST_SERVER_FAULT


class ServiceTimeoutError(ServiceFaultError):
    """The service took too long."""

    def __init__(self) -> None:
        super().__init__("did not answer in time")


class AnswerTooLargeError(ServiceFaultError):
    """The service's answer is beyond the limit."""

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed later: it would be answered alike."""
        return False


class BoundedClient:
    """Posts JSON from any thread. Connections are kept, redirects are not followed.

    The requests run on an event loop in a thread of its own: a blocking client limits each read alone, and a service
    that sends a byte now and then would hold a search for as long as it likes.
    """

    def __init__(self, headers: Mapping[str, str], *, max_answer_bytes: int = _MAX_ANSWER_BYTES) -> None:
        # A compressed answer could unpack to any size.
        fixed = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json"}
        self._max_answer_bytes = max_answer_bytes
        self._client = httpx2.AsyncClient(headers={**headers, **fixed}, follow_redirects=False)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="bounded-http", daemon=True)
        self._thread.start()

    def post(self, url: str, body: bytes, *, timeout_seconds: float) -> bytes:
        """Return the body of the answer.

        Raises ServiceTimeoutError when it is not there in time, AnswerTooLargeError when it is larger than allowed
        (4 MiB by default), ServiceFaultError when the service cannot be reached or answers with another status than
        200. No error repeats anything that was sent or received.
        """
        future = asyncio.run_coroutine_threadsafe(self._post(url, body, timeout_seconds), self._loop)
        try:
            return future.result(timeout_seconds + _GRACE_SECONDS)
        except TimeoutError as error:
            future.cancel()
            raise ServiceTimeoutError from error

    def close(self) -> None:
        """End the connections and the thread; the client cannot be used afterwards."""
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


def retry_after(header: str, *, now: datetime) -> float | None:
    """Return the seconds, 0 or more, that a Retry-After header asks for; None for one that is empty or junk.

    It is a number of seconds or a date (RFC 9110, section 10.2.3).
    """
    try:
        seconds = float(header)
    except ValueError:
        seconds = _seconds_until(header, now)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _seconds_until(date: str, now: datetime) -> float:
    """Return the seconds until an HTTP date, NaN for what is none."""
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return math.nan
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
