"""A bare copy of one branch, stored between syncs so that only changes are fetched, and the dates in its history."""

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final, TypeVar
from zlib import error as ZlibError  # noqa: N812 -- an exception's name

from dulwich.client import FetchPackResult, GitClient, HTTPUnauthorized
from dulwich.diff_tree import TreeChange
from dulwich.errors import (
    ApplyDeltaError,
    ChecksumMismatch,
    FileFormatException,
    GitProtocolError,
    NotGitRepository,
    ObjectMissing,
    WrongObjectException,
)
from dulwich.objects import Blob, Commit, ObjectID
from dulwich.pack import UnresolvedDeltas
from dulwich.refs import Ref
from dulwich.repo import Repo

from corecube.connectors.git.clients import Meter
from corecube.errors import ConfigError, UnavailableError, first_line
from corecube.process import make_private

_HEADS: Final = b"refs/heads/"
_MAX_PACKS: Final = 25  #: Each fetch adds one pack file; with more than these, a new copy is cheaper.
#: Errors that dulwich raises for damaged or hostile data.
_DAMAGED: Final = (
    *(ApplyDeltaError, AssertionError, ChecksumMismatch, EOFError, FileFormatException, LookupError),
    *(NotGitRepository, ObjectMissing, OverflowError, UnresolvedDeltas, ValueError, WrongObjectException, ZlibError),
)
_Result = TypeVar("_Result")
_MAX_COMMITS: Final = 50_000
#: The end of the year 9999, the last date of datetime; a commit may have any time.
_MAX_TIMESTAMP: Final = 253_402_300_799


@dataclass(frozen=True)
class Remote:
    """The server and branch to fetch from."""

    client: GitClient
    path: bytes  #: The repository's path for the client.
    branch: str  #: Empty for the server's default branch.
    meter: Meter
    seconds: float
    max_file_bytes: int  #: Larger files are not fetched if the server supports that.

    def head(self) -> tuple[str, ObjectID]:
        """Return the branch's name and commit; raise ConfigError if missing or inaccessible, UnavailableError."""
        found = self._request(lambda: self.client.get_refs(self.path))
        wanted = _HEADS + self.branch.encode() if self.branch else found.symrefs.get(Ref(b"HEAD"), Ref(b""))
        commit = found.refs.get(Ref(wanted))
        if not commit:
            name = f"branch {self.branch}" if self.branch else "default branch"
            raise ConfigError(f"The repository has no {name}.")
        return wanted.removeprefix(_HEADS).decode("utf-8", "backslashreplace"), commit

    def fetch(self, commit: ObjectID, repo: Repo, *, depth: int | None) -> None:
        """Fetch the missing objects of a commit; raise as `head` does, and ItemError from the meter."""
        with TemporaryFile(dir=repo.controldir()) as pack:
            found = self._request(lambda: self._fetch(commit, repo, pack, depth))
            if pack.tell():
                pack.seek(0)
                repo.object_store.add_thin_pack(pack.read, None, max_input_size=self.meter.max_bytes)
            repo.update_shallow(found.new_shallow, found.new_unshallow)

    def _fetch(self, commit: ObjectID, repo: Repo, pack: IO[bytes], depth: int | None) -> FetchPackResult:
        return self.client.fetch_pack(
            self.path,
            lambda _refs, depth=None: [commit],  # noqa: ARG005 -- dulwich passes it by name
            repo.get_graph_walker(),
            lambda block: pack.write(self.meter.count(block)),
            depth=depth,
            filter_spec=b"blob:limit=%d" % self.max_file_bytes,
        )

    def _request(self, request: Callable[[], _Result]) -> _Result:
        self.meter.start(self.seconds)
        try:
            return request()
        except HTTPUnauthorized as error:
            raise ConfigError("The server refuses access: check the token and its permissions.") from error
        except NotGitRepository as error:
            raise ConfigError(f"There is no readable repository at this address. {error}".strip()) from error
        except (GitProtocolError, OSError) as error:
            reason = first_line(error)[:200].rstrip(".")
            raise UnavailableError(f"The repository cannot be fetched: {reason}.") from error


@dataclass(frozen=True)
class Mirror:
    """The copy of a remote branch in a folder. All methods are safe for concurrent processes."""

    folder: Path
    remote: Remote
    history: bool  #: Whether to fetch the history, not only the newest commit.

    def update(self) -> tuple[str, ObjectID]:
        """Update the copy and return the branch's name and its commit; raise as Remote does."""
        name, commit = self.remote.head()
        with self._locked():
            packs = self.folder / "objects" / "pack"
            if packs.exists() and sum(1 for _ in packs.glob("*.pack")) > _MAX_PACKS:
                self.remove()
            try:
                self._update_to(commit)
            except _DAMAGED:
                # A killed process left a damaged copy: fetch a new one.
                self.remove()
                try:
                    self._update_to(commit)
                except _DAMAGED as error:
                    raise UnavailableError("The server sends an unreadable repository.") from error
        return name, commit

    def repo(self) -> Repo:
        """Open the copy, creating it if missing; the caller closes it."""
        if (self.folder / "objects").exists():
            return Repo(str(self.folder))
        self.folder.mkdir(parents=True, exist_ok=True)
        return Repo.init_bare(str(self.folder))

    def blob(self, blob_id: str) -> Blob | None:
        """Return a file's blob, None if the copy does not have it."""
        try:
            with self.repo() as repo:
                found = repo[blob_id.encode()]
        except _DAMAGED:
            return None
        return found if isinstance(found, Blob) else None

    def remove(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _update_to(self, commit: ObjectID) -> None:
        with self.repo() as repo:
            if commit not in repo.object_store:
                self.remote.fetch(commit, repo, depth=None if self.history else 1)
                # Dulwich makes packs readable for everybody, whatever the umask.
                for pack in (self.folder / "objects" / "pack").iterdir():
                    make_private(pack)
            found = repo[commit]
            if not isinstance(found, Commit):
                raise KeyError(commit)
            _ = repo[found.tree]
            repo.refs[Ref(_HEADS + b"fetched")] = commit

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the copy against changes by other processes; the system releases the lock of a dead process."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with self.folder.with_suffix(".lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


@dataclass(frozen=True)
class Dates:
    """Stores dates in a file, so that the next sync reads only the newest commits."""

    path: Path

    def of(self, repo: Repo, commit: ObjectID, files: Mapping[bytes, ObjectID]) -> dict[bytes, datetime]:
        """Return the date of the last commit that changed each file, for files found in the history.

        `files` maps paths to blob ids. Merge commits are skipped: their changes are in other commits.
        """
        known = self._load()
        found = {path: when for path, blob in files.items() if (when := known.get(_key(path, blob))) is not None}
        missing = files.keys() - found.keys()
        for path, when in _changes(repo, commit):
            if not missing:
                break
            if path in missing:
                missing.discard(path)
                found[path] = when
        temporary = self.path.with_suffix(".new")
        dates = {_key(path, files[path]): when for path, when in found.items()}
        temporary.write_text(json.dumps(dates), encoding="utf-8")
        temporary.replace(self.path)
        return {path: datetime.fromtimestamp(when, tz=UTC) for path, when in found.items()}

    def _load(self) -> dict[str, int]:
        with suppress(OSError, ValueError):
            loaded = json.loads(self.path.read_text(encoding="utf-8"))
            if isinstance(loaded, dict):
                return {key: when for key, when in loaded.items() if isinstance(when, int)}
        return {}


def _changes(repo: Repo, commit: ObjectID) -> Iterator[tuple[bytes, int]]:
    """Yield path and time, in seconds, of every change, the newest commit first."""
    for entry in repo.get_walker(include=[commit], max_entries=_MAX_COMMITS):
        for change in entry.changes():
            if isinstance(change, TreeChange) and change.new and change.new.path:
                yield change.new.path, min(max(entry.commit.commit_time, 0), _MAX_TIMESTAMP)


def _key(path: bytes, blob: ObjectID) -> str:
    return f"{blob.decode()} {path.decode('utf-8', 'surrogateescape')!a}"
