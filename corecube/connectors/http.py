"""HTTP as connectors need it: checked addresses, bounded in size and time, patient with a busy server."""

import random
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urljoin, urlsplit

import httpcore2

from corecube.connectors.addresses import AddressGuard
from corecube.connectors.bodies import body_of
from corecube.connectors.network import Deadline, GuardedBackend
from corecube.connectors.types import ItemError
from corecube.connectors.urls import checked_url, origin
from corecube.version import VERSION

USER_AGENT: Final = f"CoreCube/{VERSION}"
#: Answers of a server that is busy or restarting: asking again later may help.
_BUSY: Final = frozenset({429, 502, 503, 504})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """What one request may take."""

    #: Of the body, before and after it is decompressed.
    max_bytes: int
    #: Of one wait for the network.
    timeout_seconds: float = 20.0
    #: Of one request from its start to its body's last byte, redirects included.
    request_seconds: float = 60.0
    #: Of a request with all its repetitions and the waits between them.
    total_seconds: float = 180.0
    attempts: int = 4
    redirects: int = 5
    #: Upper end of the first random wait; each further one doubles it.
    backoff_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said."""

    #: Where the answer came from, after redirects.
    url: str
    status: int
    #: Names are in small letters; of several with one name the last.
    headers: Mapping[str, str]
    body: bytes

    @property
    def media_type(self) -> str:
        """The content type without its parameters, in small letters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The content type's charset, empty where none is given."""
        message = Message()
        message["content-type"] = self.headers.get("content-type", "")
        return str(message.get_content_charset() or "")

    @property
    def is_busy(self) -> bool:
        """Whether asking again later may help."""
        return self.status in _BUSY

    @property
    def is_redirect(self) -> bool:
        """Whether it only says where else to ask."""
        return self.status in _REDIRECTS and bool(self.headers.get("location"))

    def target(self) -> str:
        """Return where a redirect leads; raise ItemError "bad_address"."""
        return checked_url(urljoin(self.url, self.headers["location"]))

    def modified_at(self) -> datetime | None:
        """Return when the server says that it was changed."""
        return http_date(self.headers.get("last-modified", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """How one request differs from the usual."""

    headers: Mapping[str, str] = field(default_factory=dict)
    #: Whether redirects are followed; where not, they are answers too.
    follow: bool = True
    #: Whether the body behind a status and its headers is wanted; where not, it is left unread and empty.
    wants: Callable[[int, Mapping[str, str]], bool] = lambda *_: True
    #: Instead of the client's own limit.
    max_bytes: int | None = None


_USUAL: Final = Ask()


@dataclass
class HttpClient(AbstractContextManager["HttpClient"]):
    """Sends GET requests. It serves one thread at a time."""

    limits: HttpLimits
    guard: AddressGuard
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Sent to the origin `credentials_for` only, also after a redirect.
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    credentials_for: str = ""
    #: Raises ItemError for a redirect that is not to be followed.
    may_go: Callable[[str], None] = lambda _: None
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[float, float], float] = random.uniform
    clock: Callable[[], float] = time.monotonic
    ssl_context: Any = None

    def __post_init__(self) -> None:
        """Make the connection pool."""
        self._deadline = Deadline(self.clock)
        self._pool = httpcore2.ConnectionPool(
            network_backend=GuardedBackend(self.guard, self._deadline),
            ssl_context=self.ssl_context,
            max_connections=4,
            keepalive_expiry=30.0,
        )
        # A connector lives as long as somebody reads from it, and nobody says when that ends.
        weakref.finalize(self, self._pool.close)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def impatient(self) -> Self:
        """Return a client that asks once only, for somebody who waits; the caller closes it."""
        return replace(self, limits=replace(self.limits, attempts=1))

    def get(self, url: str, ask: Ask = _USUAL) -> Answer:
        """Return the answer to a GET request, whatever its status.

        A busy server is asked again, after the time it names or a random one that grows; when it stays busy its last
        answer is returned. Raises ItemError: "unreachable", "timeout", "too_large", "private_address", "redirect",
        "corrupt" for a body that cannot be decompressed.
        """
        ends = self.clock() + self.limits.total_seconds
        for attempt in range(1, self.limits.attempts):
            answer = self._tried(url, ask)
            wait = self._wait(answer, attempt)
            if (answer and not answer.is_busy) or self.clock() + wait >= ends:
                return answer or self._once(url, ask)
            self.sleep(wait)
        return self._once(url, ask)

    def _tried(self, url: str, ask: Ask) -> Answer | None:
        """Return the answer, or None where the network failed and asking again may help."""
        try:
            return self._once(url, ask)
        except ItemError as error:
            if error.reason != "unreachable":
                raise
            return None

    def _wait(self, answer: Answer | None, attempt: int) -> float:
        asked_for = retry_after(answer.headers) if answer else None
        jitter = self.uniform(0, self.limits.backoff_seconds * 2 ** (attempt - 1))
        return jitter if asked_for is None else asked_for + jitter / 4

    def _once(self, url: str, ask: Ask) -> Answer:
        """Send a request and follow its redirects."""
        self._deadline.start(self.limits.request_seconds)
        for _ in range(self.limits.redirects + 1):
            answer = self._send(url, ask)
            if not answer.is_redirect or not ask.follow:
                return answer
            url = answer.target()
            self.may_go(url)
        raise ItemError("redirect", f"The address leads around: more than {self.limits.redirects} redirects.")

    def _send(self, url: str, ask: Ask) -> Answer:
        own = self.credentials if origin(url) == self.credentials_for else {}
        sent = {"User-Agent": USER_AGENT, "Accept-Encoding": "gzip", **self.headers, **own, **ask.headers}
        step = self.limits.timeout_seconds
        timeouts = {"connect": step, "read": step, "write": step, "pool": step}
        try:
            with self._pool.stream("GET", url, headers=_raw(sent), extensions={"timeout": timeouts}) as response:
                found = _headers(response.headers)
                limit = ask.max_bytes or self.limits.max_bytes
                body = body_of(response.iter_stream(), found, limit) if ask.wants(response.status, found) else b""
                return Answer(url, response.status, found, body)
        except httpcore2.TimeoutException as error:
            raise ItemError("timeout", f"{_host(url)} took longer than it may.") from error
        except (httpcore2.NetworkError, httpcore2.RemoteProtocolError, OSError) as error:
            raise ItemError("unreachable", f"{_host(url)} cannot be reached: {_reason(error)}.") from error
        except (httpcore2.ProtocolError, httpcore2.UnsupportedProtocol) as error:
            raise ItemError("bad_address", f"{_host(url)} cannot be asked for this address.") from error


def retry_after(headers: Mapping[str, str], now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float | None:
    """Return the seconds that a server asks to wait; None where it does not say."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    moment = http_date(value)
    return None if moment is None else max(0.0, (moment - now()).total_seconds())


def http_date(value: str) -> datetime | None:
    """Return an HTTP date as a moment, None for what is none."""
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}


def _raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    try:
        return [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]
    except UnicodeEncodeError as error:
        raise ItemError("bad_address", "A header of the request cannot be written.") from error


def _host(url: str) -> str:
    return urlsplit(url).hostname or "The server"


def _reason(error: Exception) -> str:
    """Return what a person can do something with; nothing of the request stands in it."""
    return str(error).strip().rstrip(".") or type(error).__name__
