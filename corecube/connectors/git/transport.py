"""Git's smart HTTP protocol over connections that are checked and bounded."""

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import httpcore2
from dulwich.client import AbstractHttpGitClient, HTTPUnauthorized
from dulwich.errors import GitProtocolError, NotGitRepository

from corecube.connectors.addresses import AddressGuard
from corecube.connectors.http import USER_AGENT
from corecube.connectors.network import Deadline, GuardedBackend
from corecube.connectors.setup import too_large
from corecube.connectors.types import ItemError
from corecube.connectors.urls import checked_url, origin

_STEP_SECONDS: Final = 30.0
_REDIRECTS: Final = 5
_REDIRECT: Final = frozenset({301, 302, 303, 307, 308})
#: Answers of a server that wants another token, or one at all.
_REFUSED: Final = frozenset({401, 403})
#: Git answers with 404 where it does not want to say that a repository is there.
_MISSING: Final = frozenset({404, 410})
_OK: Final = 200


@dataclass
class Meter:
    """Counts what a fetch takes; one for all its requests."""

    max_bytes: int
    deadline: Deadline = field(default_factory=Deadline)
    taken: int = 0

    def start(self, seconds: float) -> None:
        """Begin a fetch that may take so long."""
        self.deadline.start(seconds)
        self.taken = 0

    def count(self, block: bytes) -> bytes:
        """Return a block as it is; raise ItemError "too_large" or "timeout" when it is one too many."""
        self.taken += len(block)
        if self.taken > self.max_bytes:
            raise too_large(self.taken, self.max_bytes)
        if self.deadline.remaining() <= 0:
            raise ItemError("timeout", "The repository took longer to fetch than it may.")
        return block


@dataclass
class _Response:
    """What dulwich asks of an answer."""

    response: httpcore2.Response
    meter: Meter
    content_type: str | None
    redirect_location: str
    _blocks: Iterator[bytes] = field(init=False)
    _waiting: bytes = b""

    def __post_init__(self) -> None:
        self._blocks = iter(self.response.iter_stream())

    def read(self, size: int = -1) -> bytes:
        """Return so many bytes, fewer only at the end."""
        while size < 0 or len(self._waiting) < size:
            block = next(self._blocks, b"")
            if not block:
                break
            self._waiting += self.meter.count(block)
        end = len(self._waiting) if size < 0 else size
        taken, self._waiting = self._waiting[:end], self._waiting[end:]
        return taken

    def close(self) -> None:
        self.response.close()


class GuardedGitClient(AbstractHttpGitClient):
    """Speaks to one host, to which alone it sends its credentials; the older "dumb" protocol is not spoken."""

    def __init__(self, url: str, *, credentials: Mapping[str, str], meter: Meter) -> None:
        super().__init__(url, quiet=True)
        self._credentials = credentials
        self._meter = meter
        self._own_host = urlsplit(url).hostname or ""
        self._own_origin = origin(url)
        # The host is where an admin said it is, often inside.
        guard = AddressGuard(trusted_hosts=frozenset({self._own_host}))
        self._pool = httpcore2.ConnectionPool(network_backend=GuardedBackend(guard, meter.deadline))
        weakref.finalize(self, self._pool.close)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _http_request(
        self,
        url: str,
        headers: dict[str, str] | None = None,
        data: bytes | Iterator[bytes] | None = None,
        raise_for_status: bool = True,  # noqa: FBT001, FBT002, ARG002 -- dulwich's signature
    ) -> tuple[Any, Callable[[int], bytes]]:
        try:
            response, arrived = self._follow(url, headers or {}, data)
        except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise GitProtocolError(f"{self._own_host} cannot be reached: {error or type(error).__name__}") from error
        _require_ok(response.status)
        kind = _header(response, b"content-type")
        if not (kind or "").startswith("application/x-git-"):
            raise NotGitRepository("The server does not answer as a git server does.")
        answer = _Response(response, self._meter, kind, arrived if arrived != url else "")
        return answer, _said_by_git(answer.read)

    def _follow(
        self, url: str, headers: Mapping[str, str], data: bytes | Iterator[bytes] | None
    ) -> tuple[httpcore2.Response, str]:
        """Return the answer and where it came from, after redirects within the host."""
        for _ in range(_REDIRECTS):
            response = self._send(url, headers, data)
            target = _header(response, b"location")
            if response.status not in _REDIRECT or not target:
                return response, url
            response.close()
            url = self._next(urljoin(url, target), may_go=data is None)
        raise GitProtocolError("The address leads around in redirects.")

    def _next(self, target: str, *, may_go: bool) -> str:
        url = checked_url(target)
        if not may_go or urlsplit(url).hostname != self._own_host:
            raise GitProtocolError("The repository has moved to another server; give its new address.")
        return url

    def _send(self, url: str, headers: Mapping[str, str], data: bytes | Iterator[bytes] | None) -> httpcore2.Response:
        credentials = self._credentials if origin(url) == self._own_origin else {}
        sent = {"User-Agent": f"git/{USER_AGENT}", "Host": urlsplit(url).netloc, **headers, **credentials}
        body = data if data is None or isinstance(data, bytes) else b"".join(data)
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), _STEP_SECONDS)
        request = httpcore2.Request(
            "GET" if body is None else "POST",
            url,
            headers=[(name.encode(), value.encode()) for name, value in sent.items()],
            content=body,
            extensions={"timeout": timeouts},
        )
        return self._pool.handle_request(request)


def _require_ok(status: int) -> None:
    if status in _REFUSED:
        raise HTTPUnauthorized(None, f"status {status}")
    if status in _MISSING:
        raise NotGitRepository("The server has no repository there, or does not show it to this user.")
    if status != _OK:
        raise GitProtocolError(f"The server answers with status {status}.")


def _header(response: httpcore2.Response, name: bytes) -> str | None:
    found = [value for key, value in response.headers if key.lower() == name]
    return found[-1].decode("latin-1") if found else None


def _said_by_git(read: Callable[[int], bytes]) -> Callable[[int], bytes]:
    """Return the read function with the network's errors as dulwich's."""

    def checked(size: int = -1) -> bytes:
        try:
            return read(size)
        except httpcore2.TimeoutException as error:
            raise ItemError("timeout", "The repository took longer to fetch than it may.") from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise GitProtocolError(f"The connection broke off: {error or type(error).__name__}") from error

    return checked
