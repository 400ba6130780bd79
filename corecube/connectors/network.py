"""Connections that go to checked addresses only and that end by a deadline, whatever the other side does."""

import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import httpcore2

from corecube.connectors.addresses import AddressGuard


class Deadline:
    """When the request at work must have ended; the connections of one client share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends = float("inf")

    def start(self, seconds: float) -> None:
        """Begin anew."""
        self._ends = self._clock() + seconds

    def remaining(self) -> float:
        """Return the seconds that are left, negative when it has passed."""
        return self._ends - self._clock()

    def cut(self, timeout: float | None) -> float:
        """Return a timeout that ends no later than the deadline; raise ReadTimeout when that has passed."""
        left = self.remaining()
        if left <= 0:
            raise httpcore2.ReadTimeout("The request took longer than it may.")
        return left if timeout is None else min(timeout, left)


@dataclass(frozen=True)
class GuardedBackend(httpcore2.NetworkBackend):
    """Opens TCP connections to the addresses that a guard lets through."""

    guard: AddressGuard
    deadline: Deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Return a stream to the first checked address that answers; raise ItemError from the guard."""
        for_last: Exception = httpcore2.ConnectError(f"{host} does not answer.")
        for address in self.guard.addresses(host, port):
            try:
                stream = httpcore2.SyncBackend().connect_tcp(
                    address, port, self.deadline.cut(timeout), local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                for_last = error
            else:
                return _Stream(stream, self.deadline)
        raise for_last


@dataclass(frozen=True)
class _Stream(httpcore2.NetworkStream):
    """A stream whose every wait ends with the deadline, so that a byte a second does not keep it open for ever."""

    inner: httpcore2.NetworkStream
    deadline: Deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self.inner.read(max_bytes, self.deadline.cut(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.inner.write(buffer, self.deadline.cut(timeout))

    def close(self) -> None:
        self.inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        inner = self.inner.start_tls(ssl_context, server_hostname, self.deadline.cut(timeout))
        return _Stream(inner, self.deadline)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 -- httpcore's signature
        return self.inner.get_extra_info(info)
