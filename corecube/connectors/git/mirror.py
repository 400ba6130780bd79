"""A bare copy of one branch, kept between syncs so that only what changed is fetched."""

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final, TypeVar
from zlib import error as ZlibError  # noqa: N812 -- an exception's name

from dulwich.client import FetchPackResult, GitClient, HTTPUnauthorized
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

from corecube.connectors.git.transport import Meter
from corecube.errors import ConfigError, UnavailableError
from corecube.private import make_private

_HEADS: Final = b"refs/heads/"
#: Every fetch leaves one file of objects; with more than these a new copy costs less than it saves.
_MAX_PACKS: Final = 25
#: What damaged or hostile data makes dulwich raise.
_DAMAGED: Final = (
    ApplyDeltaError,
    AssertionError,
    ChecksumMismatch,
    EOFError,
    FileFormatException,
    LookupError,
    NotGitRepository,
    ObjectMissing,
    OverflowError,
    UnresolvedDeltas,
    ValueError,
    WrongObjectException,
    ZlibError,
)
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Remote:
    """Where a branch is fetched from."""

    client: GitClient
    #: What the client calls the repository.
    path: bytes
    #: Empty for the branch that the server calls its own.
    branch: str
    meter: Meter
    #: Of one fetch.
    seconds: float
    #: Files larger than this are left on the server where it can leave them out.
    max_file_bytes: int

    def head(self) -> tuple[str, ObjectID]:
        """Return the branch's name and its commit.

        Raises ConfigError for a repository or branch that is not there or not shown, UnavailableError for a server
        that does not answer.
        """
        found = self._asked(lambda: self.client.get_refs(self.path))
        wanted = _HEADS + self.branch.encode() if self.branch else found.symrefs.get(Ref(b"HEAD"), Ref(b""))
        commit = found.refs.get(Ref(wanted))
        if not commit:
            name = f"branch {self.branch}" if self.branch else "branch that is its own"
            raise ConfigError(f"The repository has no {name}.")
        return wanted.removeprefix(_HEADS).decode("utf-8", "backslashreplace"), commit

    def fetch(self, commit: ObjectID, repo: Repo, *, depth: int | None) -> None:
        """Fetch what a commit needs and the copy does not have; raise as `head` does, and ItemError from the meter."""
        with TemporaryFile(dir=repo.controldir()) as pack:
            found = self._asked(lambda: self._fetch(commit, repo, pack, depth))
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

    def _asked(self, request: Callable[[], _Result]) -> _Result:
        self.meter.start(self.seconds)
        try:
            return request()
        except HTTPUnauthorized as error:
            raise ConfigError("The server refuses access: the token is missing, wrong or may not read this.") from error
        except NotGitRepository as error:
            raise ConfigError(f"There is no repository there that can be read. {error}".strip()) from error
        except (GitProtocolError, OSError) as error:
            raise UnavailableError(f"The repository cannot be fetched: {_line(error)}") from error


@dataclass(frozen=True)
class Mirror:
    """The copy of a remote branch in a folder. Every method may be called by several processes at once."""

    folder: Path
    remote: Remote
    #: With the history, or only with the newest state.
    history: bool

    def update(self) -> tuple[str, ObjectID]:
        """Bring the copy up to date and return the branch's name and its commit; raise as Remote does."""
        name, commit = self.remote.head()
        with self._alone():
            if self._is_crowded():
                self.remove()
            try:
                self._bring(commit)
            except _DAMAGED:
                # What a killed process left behind cannot be repaired, but had again.
                self.remove()
                self._bring_anew(commit)
        return name, commit

    def repo(self) -> Repo:
        """Return the copy, opened, made if missing; the caller closes it."""
        if (self.folder / "objects").exists():
            return Repo(str(self.folder))
        self.folder.mkdir(parents=True, exist_ok=True)
        return Repo.init_bare(str(self.folder))

    def blob(self, blob_id: str) -> Blob | None:
        """Return a file's bytes as git holds them, None when the copy has none such."""
        try:
            with self.repo() as repo:
                found = repo[blob_id.encode()]
        except _DAMAGED:
            return None
        return found if isinstance(found, Blob) else None

    def remove(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _bring(self, commit: ObjectID) -> None:
        with self.repo() as repo:
            if commit not in repo.object_store:
                self.remote.fetch(commit, repo, depth=None if self.history else 1)
                # Dulwich makes packs readable for everybody, whatever the mask.
                for pack in (self.folder / "objects" / "pack").iterdir():
                    make_private(pack)
            found = repo[commit]
            if not isinstance(found, Commit):
                raise KeyError(commit)
            _ = repo[found.tree]
            repo.refs[Ref(_HEADS + b"fetched")] = commit

    def _bring_anew(self, commit: ObjectID) -> None:
        try:
            self._bring(commit)
        except _DAMAGED as error:
            raise UnavailableError("The server sends a repository that cannot be read.") from error

    def _is_crowded(self) -> bool:
        packs = self.folder / "objects" / "pack"
        return packs.exists() and sum(1 for _ in packs.glob("*.pack")) > _MAX_PACKS

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other process changes the copy; the system ends the wait when that one dies."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with self.folder.with_suffix(".lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _line(error: Exception) -> str:
    """Return an error's first line, short, for people."""
    first = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return first[:200].rstrip(".") + "."
