"""Git clients with limits: smart HTTP over checked connections, and repositories on this machine."""

import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import httpcore2
from dulwich.client import AbstractHttpGitClient, HTTPUnauthorized, LocalGitClient
from dulwich.errors import GitProtocolError, NotGitRepository
from dulwich.object_store import BaseObjectStore, DiskObjectStore
from dulwich.repo import Repo

from corecube.connectors.http import REDIRECTS, USER_AGENT
from corecube.connectors.local_files import LocalFiles
from corecube.connectors.network import AddressGuard, Deadline, GuardedBackend, checked_url, origin
from corecube.connectors.setup import too_large
from corecube.connectors.types import ItemError
from corecube.errors import ConfigError

_TIMEOUT: Final = "Fetching the repository exceeded the time limit."
_STEP_SECONDS: Final = 30.0
_REDIRECTS: Final = 5
_REFUSED: Final = frozenset({401, 403})  #: Statuses for a missing or insufficient token.
_MISSING: Final = frozenset({404, 410})  #: Git servers answer with 404 for repositories that the user may not see.
CONTROL: Final = frozenset({".git"})  #: The hidden folder of a repository.
_MAX_STORES: Final = 100  #: Limits the number of object stores: alternates may be circular.


@dataclass
class Meter:
    """Counts bytes and time of a fetch over all its requests."""

    max_bytes: int
    deadline: Deadline = field(default_factory=Deadline)
    taken: int = 0

    def start(self, seconds: float) -> None:
        """Start a fetch with a time limit."""
        self.deadline.start(seconds)
        self.taken = 0

    def count(self, block: bytes) -> bytes:
        """Return a block unchanged; raise ItemError "too_large" or "timeout" beyond the limits."""
        self.taken += len(block)
        if self.taken > self.max_bytes:
            raise too_large(self.taken, self.max_bytes)
        if self.deadline.remaining() <= 0:
            raise ItemError("timeout", _TIMEOUT)
        return block


@dataclass
class _Response:
    """A response with the interface that dulwich expects."""

    response: httpcore2.Response
    meter: Meter
    content_type: str | None
    redirect_location: str
    _blocks: Iterator[bytes] = field(init=False)
    _waiting: bytes = b""

    def __post_init__(self) -> None:
        self._blocks = iter(self.response.iter_stream())

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, fewer only at the end; network errors become those that dulwich expects."""
        try:
            while (size < 0 or len(self._waiting) < size) and (block := next(self._blocks, b"")):
                self._waiting += self.meter.count(block)
        except httpcore2.TimeoutException as error:
            raise ItemError("timeout", _TIMEOUT) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise GitProtocolError(f"The connection was interrupted: {error or type(error).__name__}") from error
        end = len(self._waiting) if size < 0 else size
        taken, self._waiting = self._waiting[:end], self._waiting[end:]
        return taken

    def close(self) -> None:
        self.response.close()


class GuardedGitClient(AbstractHttpGitClient):
    """Connects to one host and sends its credentials to no other; the "dumb" protocol is not supported."""

    def __init__(self, url: str, *, credentials: Mapping[str, str], meter: Meter) -> None:
        super().__init__(url, quiet=True)
        self._credentials = credentials
        self._meter = meter
        self._host = urlsplit(url).hostname or ""
        self._origin = origin(url)
        # An admin chose the host, often in a private network.
        guard = AddressGuard(trusted_hosts=frozenset({self._host}))
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
            response, final_url = self._follow(url, headers or {}, data)
        except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise GitProtocolError(f"{self._host} cannot be reached: {error or type(error).__name__}") from error
        status = response.status
        if status in _REFUSED:
            raise HTTPUnauthorized(None, f"status {status}")
        if status in _MISSING:
            raise NotGitRepository("The repository does not exist, or the user has no access to it.")
        if status != HTTPStatus.OK:
            raise GitProtocolError(f"The server answers with status {status}.")
        kind = _header(response, b"content-type")
        if not (kind or "").startswith("application/x-git-"):
            raise NotGitRepository("The server is not a git server.")
        answer = _Response(response, self._meter, kind, final_url if final_url != url else "")
        return answer, answer.read

    def _follow(
        self, url: str, headers: Mapping[str, str], data: bytes | Iterator[bytes] | None
    ) -> tuple[httpcore2.Response, str]:
        """Return the response and its address, after redirects within the host."""
        for _ in range(_REDIRECTS):
            response = self._send(url, headers, data)
            target = _header(response, b"location")
            if response.status not in REDIRECTS or not target:
                return response, url
            response.close()
            url = checked_url(urljoin(url, target))
            if data is not None or urlsplit(url).hostname != self._host:
                raise GitProtocolError("The repository has moved to another server. Enter its new address.")
        raise GitProtocolError("The server sends too many redirects.")

    def _send(self, url: str, headers: Mapping[str, str], data: bytes | Iterator[bytes] | None) -> httpcore2.Response:
        credentials = self._credentials if origin(url) == self._origin else {}
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


def _header(response: httpcore2.Response, name: bytes) -> str | None:
    found = [value for key, value in response.headers if key.lower() == name]
    return found[-1].decode("latin-1") if found else None


class GuardedLocalClient(LocalGitClient):
    """Opens repositories on this machine if connections may read all their folders.

    A repository can use other folders: a file `.git`, `commondir` and `alternates` name them.
    """

    def __init__(self, local: LocalFiles) -> None:
        super().__init__(quiet=True)
        self._local = local

    def _open_repo(self, path: str | bytes) -> "closing[Repo]":  # type: ignore[override]  # dulwich's is of the class
        self._local.require(Path(os.fsdecode(path)), shown=CONTROL)
        opened = super()._open_repo(path)
        repo: Repo = opened.thing  # type: ignore[attr-defined]  # not in the stubs
        with ExitStack() as failed:
            failed.callback(repo.close)
            places = (Path(os.path.realpath(part)) for part in _folders(repo))
            if not all(self._local.allows(place, shown=CONTROL) for place in places):
                raise ConfigError(self._local.refusal)
            failed.pop_all()
        return opened


def _folders(repo: Repo) -> Iterator[str | os.PathLike[str]]:
    yield from (repo.controldir(), repo.commondir())
    waiting: list[BaseObjectStore] = [repo.object_store]
    for _ in range(_MAX_STORES):
        if not waiting:
            return
        store = waiting.pop()
        if isinstance(store, DiskObjectStore):
            yield from (store.path, store.pack_dir)
            waiting += store.alternates
    raise ConfigError("The repository has too many alternates.")
