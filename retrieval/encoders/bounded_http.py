"""Asking an HTTP service within one total time and one size, whatever the service does."""

import asyncio
from collections.abc import Mapping
from threading import Thread
from typing import Final

import httpx2

from retrieval.errors import RerankError, RerankTimeoutError

_CONNECT_SECONDS: Final = 2.0
_MOST_ANSWER_BYTES: Final = 4 * 2**20
#: How much longer than its time a request may take to be given up.
_GRACE_SECONDS: Final = 0.25
_OK: Final = 200


class BoundedClient:
    """Posts JSON from any thread. Connections are kept, redirects are not followed.

    The requests run on an event loop in a thread of its own: a blocking client limits each read alone, and a service
    that sends a byte now and then would hold a search for as long as it likes.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        # A compressed answer could unpack to any size.
        fixed = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json"}
        self._client = httpx2.AsyncClient(headers={**headers, **fixed}, follow_redirects=False)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="bounded-http", daemon=True)
        self._thread.start()

    def post(self, url: str, body: bytes, *, timeout_seconds: float) -> bytes:
        """Return the body of the answer.

        Raises RerankTimeoutError when it is not there in time, RerankError when the service cannot be reached, answers
        with another status than 200, or with more than 4 MiB. No error repeats anything that was sent or received.
        """
        future = asyncio.run_coroutine_threadsafe(self._post(url, body, timeout_seconds), self._loop)
        try:
            return future.result(timeout_seconds + _GRACE_SECONDS)
        except TimeoutError as error:
            future.cancel()
            raise RerankTimeoutError from error

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
            raise RerankTimeoutError from None
        except httpx2.HTTPError as error:
            raise RerankError(f"The reranking service cannot be reached ({type(error).__name__}).") from None

    async def _exchange(self, url: str, body: bytes, limits: httpx2.Timeout) -> bytes:
        async with self._client.stream("POST", url, content=body, timeout=limits) as response:
            if response.status_code != _OK:
                raise RerankError(f"The reranking service answered with status {response.status_code}.")
            content = bytearray()
            async for part in response.aiter_raw():
                content += part
                if len(content) > _MOST_ANSWER_BYTES:
                    raise RerankError(f"The reranking service answered with more than {_MOST_ANSWER_BYTES} bytes.")
            return bytes(content)
