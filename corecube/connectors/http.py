"""The HTTP client of connectors: checked addresses, limits on size and time, retries for a busy server."""

import base64
import random
import time
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, Self
from urllib.parse import urljoin, urlsplit

import httpcore2

from corecube.connectors.network import AddressGuard, Deadline, GuardedBackend, checked_url, origin
from corecube.connectors.setup import too_large
from corecube.connectors.types import ItemError
from corecube.version import VERSION

USER_AGENT: Final = f"CoreCube/{VERSION}"
_BUSY: Final = frozenset({429, 502, 503, 504})  #: Statuses of a server that is busy or restarting: a retry may help.
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_BLOCK: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of one request."""

    max_bytes: int  #: Body size, before and after decompression.
    timeout_seconds: float = 20.0  #: One wait for the network.
    request_seconds: float = 60.0  #: One request from its start to the last byte of its body, including redirects.
    total_seconds: float = 180.0  #: A request with all its retries and the waits between them.
    attempts: int = 4
    redirects: int = 5
    backoff_seconds: float = 1.0  #: Maximum of the first random wait; each further wait doubles it.


@dataclass(frozen=True, slots=True)
class Response:
    """The response of a server."""

    url: str  #: The final address, after redirects.
    status: int
    headers: Mapping[str, str]  #: Names are in lower case; if a name is repeated, its last value.
    body: bytes

    @property
    def media_type(self) -> str:
        """The content type without its parameters, in lower case."""
        return media_type_of(self.headers)

    @property
    def is_redirect(self) -> bool:
        """Whether this is a redirect with a target."""
        return self.status in REDIRECTS and bool(self.headers.get("location"))

    def target(self) -> str:
        """Return the target of a redirect; raise ItemError "bad_address"."""
        return checked_url(urljoin(self.url, self.headers["location"]))

    def modified_at(self) -> datetime | None:
        """Return the date of the header Last-Modified, None without a valid one."""
        return http_date(self.headers.get("last-modified", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """Options of one request."""

    headers: Mapping[str, str] = field(default_factory=dict)
    follow: bool = True  #: Whether to follow redirects; if not, the redirect is the response.
    #: Decides by status and headers whether to read the body; an unread body is empty.
    wants_body: Callable[[int, Mapping[str, str]], bool] = lambda *_: True
    max_bytes: int | None = None
    content: bytes | None = None  #: The body of a POST request; None for a GET request.


_DEFAULT_OPTIONS: Final = RequestOptions()


@dataclass
class HttpClient(AbstractContextManager["HttpClient"]):
    """Sends requests. Not thread-safe: one thread at a time."""

    limits: HttpLimits
    guard: AddressGuard
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Headers that are sent to the origin `credentials_for` only, also after a redirect.
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    credentials_for: str = ""
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[float, float], float] = random.uniform
    clock: Callable[[], float] = time.monotonic
    ssl_context: Any = None

    def __post_init__(self) -> None:
        self._deadline = Deadline(self.clock)
        self._pool = httpcore2.ConnectionPool(
            network_backend=GuardedBackend(self.guard, self._deadline),
            ssl_context=self.ssl_context,
            max_connections=4,
            keepalive_expiry=30.0,
        )
        # Connectors are not closed explicitly.
        weakref.finalize(self, self._pool.close)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def without_retries(self) -> Self:
        """Return a client that sends each request once only, for interactive checks; the caller closes it."""
        return replace(self, limits=replace(self.limits, attempts=1))

    def get(self, url: str, options: RequestOptions = _DEFAULT_OPTIONS) -> Response:
        """Return the response to a request, whatever its status.

        A busy server gets retries, after its Retry-After time or a random, growing wait; if it stays busy, its last
        response is returned. Raises ItemError: "unreachable", "timeout", "too_large", "private_address", "redirect",
        "corrupt" for a body that cannot be decompressed.
        """
        ends = self.clock() + self.limits.total_seconds
        for attempt in range(1, self.limits.attempts):
            response = self._get_if_reachable(url, options)
            requested = retry_after(response.headers) if response else None
            jitter = self.uniform(0, self.limits.backoff_seconds * 2 ** (attempt - 1))
            wait = jitter if requested is None else requested + jitter / 4
            if (response and response.status not in _BUSY) or self.clock() + wait >= ends:
                return response or self._get_once(url, options)
            self.sleep(wait)
        return self._get_once(url, options)

    def _get_if_reachable(self, url: str, options: RequestOptions) -> Response | None:
        """Return the response, or None if the network failed and a retry may help."""
        try:
            return self._get_once(url, options)
        except ItemError as error:
            if error.reason != "unreachable":
                raise
            return None

    def _get_once(self, url: str, options: RequestOptions) -> Response:
        self._deadline.start(self.limits.request_seconds)
        for _ in range(self.limits.redirects + 1):
            response = self._send(url, options)
            if not response.is_redirect or not options.follow:
                return response
            url = response.target()
        raise ItemError("redirect", f"The server sent more than {self.limits.redirects} redirects.")

    def _send(self, url: str, options: RequestOptions) -> Response:
        credentials = self.credentials if origin(url) == self.credentials_for else {}
        headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "gzip", **self.headers, **credentials}
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), self.limits.timeout_seconds)
        host = urlsplit(url).hostname or "The server"
        try:
            sent = {**headers, **options.headers}.items()
            raw = [(name.encode("ascii"), value.encode("latin-1")) for name, value in sent]
        except UnicodeEncodeError as error:
            raise ItemError("bad_address", "A request header contains an invalid character.") from error
        try:
            method, extensions = "GET" if options.content is None else "POST", {"timeout": timeouts}
            with self._pool.stream(
                method, url, headers=raw, content=options.content, extensions=extensions
            ) as response:
                found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
                wants_body = options.wants_body(response.status, found)
                limit = options.max_bytes or self.limits.max_bytes
                body = _body_of(response.iter_stream(), found, limit) if wants_body else b""
                return Response(url, response.status, found, body)
        except httpcore2.TimeoutException as error:
            raise ItemError("timeout", f"{host} did not answer in time.") from error
        except (httpcore2.NetworkError, httpcore2.RemoteProtocolError, OSError) as error:
            # Only the network's reason: nothing of the request may appear in the message.
            reason = str(error).strip().rstrip(".") or type(error).__name__
            raise ItemError("unreachable", f"{host} cannot be reached: {reason}.") from error
        except (httpcore2.ProtocolError, httpcore2.UnsupportedProtocol) as error:
            raise ItemError("bad_address", f"{host} does not accept a request for this address.") from error


def basic_authorization(user: str, password: str) -> dict[str, str]:
    """Return the Authorization header with a user and a password."""
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


def media_type_of(headers: Mapping[str, str]) -> str:
    """Return the content type without its parameters, in lower case."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def retry_after(headers: Mapping[str, str], now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float | None:
    """Return the wait in seconds that a server requests; None if it requests none."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    moment = http_date(value)
    return None if moment is None else max(0.0, (moment - now()).total_seconds())


def http_date(value: str) -> datetime | None:
    """Return an HTTP date with its time zone, None for an invalid one."""
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _body_of(blocks: Iterable[bytes], headers: Mapping[str, str], limit: int) -> bytes:
    """Return a decompressed body; raise ItemError as soon as it exceeds the limit in bytes."""
    if (announced := headers.get("content-length", "")).isdigit() and int(announced[:18]) > limit:
        raise too_large(int(announced[:18]), limit)
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding in {"", "identity"}:
        return _joined(blocks, limit)
    if encoding not in {"gzip", "x-gzip"}:
        raise ItemError("corrupt", "The server uses an unsupported compression.")
    return _joined(_gunzipped(blocks), limit)


def gunzip(content: bytes, limit: int) -> bytes:
    """Return the decompressed bytes of gzip content; raise ItemError "too_large" or "corrupt"."""
    return _joined(_gunzipped([content]), limit)


def _gunzipped(blocks: Iterable[bytes]) -> Iterable[bytes]:
    opened = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        for block in blocks:
            waiting = block
            while waiting and not opened.eof:
                yield opened.decompress(waiting, _BLOCK)
                waiting = opened.unconsumed_tail
    except zlib.error as error:
        raise ItemError("corrupt", "The compressed content is damaged.") from error
    if not opened.eof:
        raise ItemError("corrupt", "The compressed content is incomplete.")


def _joined(blocks: Iterable[bytes], limit: int) -> bytes:
    parts = bytearray()
    for block in blocks:
        parts += block
        if len(parts) > limit:
            raise too_large(len(parts), limit)
    return bytes(parts)
