"""Strict parsing of URLs, and network connections to checked addresses, with a deadline for each request.

A name is resolved once, each of its addresses is checked, and the connection is made to a checked address. A name
therefore cannot resolve to one machine during the check and to another one afterwards (DNS rebinding).
"""

import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import httpcore2

from corecube.connectors.setup import FieldError
from corecube.connectors.types import ItemError
from corecube.metadata_addresses import REFUSAL, Address, names_refused

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve: TypeAlias = Callable[[str, int], Sequence[str]]

#: IPv6 addresses that contain an IPv4 address behind a translator (RFC 6052).
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host name, in the system's order of preference; raise OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(frozen=True, slots=True)
class AddressGuard:
    """Allows connections to public addresses, and to those that are allowed by network or by host name."""

    networks: tuple[Network, ...] = ()
    trusted_hosts: frozenset[str] = frozenset()  #: Hosts that an admin configured; their addresses are not checked.
    resolve: Resolve = resolve

    def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host.

        Raises ItemError "unreachable" for an unknown name, and "private_address" if any of its addresses is not
        allowed. Link-local and metadata addresses are never allowed, not even on trusted hosts.
        """
        try:
            found = self.resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise ItemError("unreachable", f"The host name {host} is unknown.") from error
        if any(map(names_refused, found)):
            raise ItemError("private_address", f"{host}: {REFUSAL}")
        if host.lower() not in self.trusted_hosts and not all(self._allows(it) for it in found):
            raise ItemError("private_address", f"{host} is in a private network.")
        if not found:
            raise ItemError("unreachable", f"The host name {host} has no address.")
        return found

    def _allows(self, text: str) -> bool:
        address: Address = ipaddress.ip_address(text.partition("%")[0])
        if isinstance(address, ipaddress.IPv6Address):
            # What counts is the IPv4 address that it contains, if any.
            nat64 = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
            address = nat64 or address.ipv4_mapped or address.sixtofour or address
        is_site_local = isinstance(address, ipaddress.IPv6Address) and address.is_site_local
        is_public = address.is_global and not (address.is_multicast or address.is_reserved or is_site_local)
        return is_public or any(address in network for network in self.networks)


class Deadline:
    """When the current request must end; the connections of one client share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends = float("inf")

    def start(self, seconds: float) -> None:
        """Start a new period."""
        self._ends = self._clock() + seconds

    def remaining(self) -> float:
        """Return the seconds until the deadline, negative afterwards."""
        return self._ends - self._clock()

    def cut(self, timeout: float | None) -> float:
        """Return a timeout that ends no later than the deadline; raise ReadTimeout after the deadline."""
        left = self.remaining()
        if left <= 0:
            raise httpcore2.ReadTimeout("The request exceeded its time limit.")
        return left if timeout is None else min(timeout, left)


@dataclass(frozen=True)
class GuardedBackend(httpcore2.NetworkBackend):
    """Opens TCP connections to the addresses that a guard allows."""

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
        failure: Exception = httpcore2.ConnectError(f"{host} does not answer.")
        for address in self.guard.addresses(host, port):
            try:
                stream = httpcore2.SyncBackend().connect_tcp(
                    address, port, self.deadline.cut(timeout), local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            else:
                return _Stream(stream, self.deadline)
        raise failure


@dataclass(frozen=True)
class _Stream(httpcore2.NetworkStream):
    """A stream whose every wait ends with the deadline, so that a slow server cannot keep it open forever."""

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


def checked_url(url: str) -> str:
    """Return an http or https address without its fragment and with its host in ASCII.

    Raises ItemError "bad_address" for anything else and for an address with a user or a password,
    "private_address" for a link-local or metadata address.
    """
    try:
        parts = urlsplit(url)
        is_ipv6 = ":" in (parts.hostname or "")
        host = f"[{parts.hostname}]" if is_ipv6 else (parts.hostname or "").encode("idna").decode()
        port = parts.port
    except (ValueError, UnicodeError) as error:
        raise ItemError("bad_address", "The address is invalid.") from error
    if parts.scheme not in _DEFAULT_PORTS or not host:
        raise ItemError("bad_address", "The address must begin with http:// or https://.")
    if parts.username is not None or parts.password is not None:
        raise ItemError("bad_address", "The address must not contain a user or a password.")
    if names_refused(host):
        raise ItemError("private_address", REFUSAL)
    place = host if port in {None, _DEFAULT_PORTS[parts.scheme]} else f"{host}:{port}"
    return urlunsplit((parts.scheme, place, _printable(parts.path or "/"), _printable(parts.query), ""))


def checked_field(field: str, url: str, problem: str) -> str:
    """Return the address in a field as `checked_url` does; raise FieldError with the problem and its cause."""
    try:
        return checked_url(url)
    except ItemError as error:
        raise FieldError(field, f"{problem} {error}") from error


def origin(url: str) -> str:
    """Return scheme, host and port of an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _printable(text: str) -> str:
    """Return a path or query with all characters outside printable ASCII percent-encoded."""
    return "".join(
        char if "!" <= char <= "~" else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace"))
        for char in text
    )
