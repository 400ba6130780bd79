"""A folder on this machine's disk, with its subfolders."""

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final, Self, TypeAlias

from pydantic import ConfigDict, Field

from corecube.connectors.globs import EVERYTHING, Globs
from corecube.connectors.local_files import EVERY_FILE, LocalFiles, place_of
from corecube.connectors.setup import FieldError, SourceConfig, SourceSetup, too_large
from corecube.connectors.types import Capability, ItemError, ItemProblem, SourceItem
from corecube.errors import ConfigError


@dataclass(frozen=True, slots=True)
class _Entry:
    """Something in a folder, as it was when the folder was listed."""

    path: Path
    is_folder: bool
    is_link: bool


_Found: TypeAlias = _Entry | ItemProblem
#: What a file that is locked, a network drive that is away or a busy machine answers: later it may be read.
_PASSING: Final = frozenset(
    {errno.EAGAIN, errno.EBUSY, errno.ETXTBSY, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EMFILE, errno.ENFILE}
)


class FolderConfig(SourceConfig):
    """Which folder."""

    model_config = ConfigDict(extra="ignore")

    path: Any = Field(
        None,
        description="Absolute path on the server, below one of CORECUBE_FOLDER_ROOTS; what lies below is read too.",
    )


@dataclass(frozen=True, slots=True)
class FolderConnector:
    """Reads the files below `root`, sorted by path. Hidden files and folders are left out.

    Nothing outside the root, and nothing that `local` refuses, is ever read: a link to a folder is not followed, and
    a link to a file counts only when the file lies inside. A root that is a file stands for itself.
    """

    root: Path
    max_bytes: int
    globs: Globs = EVERYTHING
    local: LocalFiles = EVERY_FILE

    @classmethod
    def from_setup(cls, setup: SourceSetup) -> Self:
        """Return the connector of a connection whose config holds `path`; raise ConfigError without one."""
        config = setup.read(FolderConfig)
        if not isinstance(config.path, str) or not config.path:
            raise FieldError("path", "A folder connection needs a path.")
        try:
            root = Path(config.path).expanduser().absolute()
        except RuntimeError as error:
            raise FieldError("path", f"There is no such user's home folder: {config.path}.") from error
        try:
            setup.local.require(root)
        except ConfigError as error:
            raise FieldError("path", str(error)) from error
        return cls(root, setup.limit(config.max_bytes), config.globs(), setup.local)

    def preflight(self) -> Iterator[Capability]:
        """Yield whether the root can be read."""
        try:
            self.check()
        except ConfigError as error:
            yield Capability.failed("read", str(error))
        else:
            yield Capability.passed("read", "It can be listed and read.")

    def check(self) -> None:
        """Raise ConfigError when the root is missing or cannot be listed."""
        if not os.access(self.root, os.R_OK | (os.X_OK if self._root_is_folder() else 0)):
            raise ConfigError(f"{self.root} cannot be read by this process.")

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the files and the problems below the root; raise ConfigError when the root cannot be listed."""
        if self._root_is_folder():
            yield from self._below_root()
        else:
            yield self._file(self.root, _text(self.root.name))

    def read(self, item: SourceItem) -> bytes:
        """Return a file's bytes; raise ItemError for one that is too large, gone or not readable."""
        try:
            with self._open(Path(item.locator)) as file:
                if (size := os.fstat(file.fileno()).st_size) > self.max_bytes:
                    raise too_large(size, self.max_bytes)
                return file.read()
        except OSError as error:
            if not self.root.exists():
                # Another worker may have it: the item is tried again.
                raise ItemError("unavailable", self.absence()) from error
            if isinstance(error, FileNotFoundError):
                raise ItemError("gone", "The file was removed after it was listed.") from error
            reason = "unavailable" if error.errno in _PASSING else "unreadable"
            raise ItemError(reason, f"The file cannot be read: {error.strerror}.") from error

    def absence(self) -> str:
        """Return what is to be said where this machine has nothing at the root."""
        return f"There is nothing at {self.root} on this machine; every worker needs the folder at the same path."

    def _open(self, path: Path) -> IO[bytes]:
        """Open a file inside the root; raise ItemError where something else has come into its place since."""
        try:
            target = path.resolve(strict=True)
        except RuntimeError as error:
            raise ItemError("symlink", "The link leads around in a loop.") from error
        if not target.is_relative_to(self.root.resolve()):
            raise ItemError("symlink", "The link leads out of the source's folder.")
        file = open(target, "rb", opener=_open_no_link)  # noqa: SIM115 -- pathlib takes no opener
        try:
            self._require_file(file.fileno(), target)
        except BaseException:
            file.close()
            raise
        return file

    def _require_file(self, handle: int, target: Path) -> None:
        # A folder on the way may have been replaced by a link since; where the open file lies is certain.
        self._require_inside(place_of(handle, target))
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ItemError("not_a_file", "This is no longer a file.")

    def _require_inside(self, place: Path) -> None:
        if not place.is_relative_to(self.root.resolve()):
            raise ItemError("symlink", "The link leads out of the source's folder.")
        if not self.local.allows(place):
            raise ItemError("not_allowed", "Connections may not read this file.")

    def _root_is_folder(self) -> bool:
        """Return whether the root is a folder, not a file; raise ConfigError when it is neither or may not be read."""
        self.local.require(self.root)
        try:
            mode = self.root.stat().st_mode
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ConfigError(f"There is nothing at {self.root}.") from error
        except OSError as error:
            raise ConfigError(f"{self.root} cannot be read by this process: {error.strerror}.") from error
        except ValueError as error:
            raise ConfigError("The path holds a character that no path can hold.") from error
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            raise ConfigError(f"{self.root} is neither a file nor a folder.")
        return stat.S_ISDIR(mode)

    def _below_root(self) -> Iterator[SourceItem | ItemProblem]:
        try:
            waiting = self._contents(self.root, os.O_DIRECTORY)
        except OSError as error:
            raise ConfigError(f"{self.root} cannot be listed: {error.strerror}.") from error
        if waiting is None:
            raise ConfigError(self.local.refusal)
        # A stack instead of recursion: a tree may be deeper than Python's calls.
        while waiting:
            found = waiting.pop()
            if isinstance(found, _Entry) and found.is_folder:
                waiting += self._folder(found.path)
                continue
            result = found if isinstance(found, ItemProblem) else self._entry(found)
            if self._wants(result):
                yield result

    def _wants(self, found: SourceItem | ItemProblem) -> bool:
        """Return whether the patterns take something in; what hides others is told unless it is excluded itself."""
        if isinstance(found, ItemProblem) and found.covers_subtree:
            return not self.globs.excludes(found.external_id)
        return self.globs.want(found.external_id)

    def _folder(self, folder: Path) -> "list[_Found]":
        """Return what a folder holds, last first, or the one problem of a folder that cannot be listed."""
        try:
            return self._contents(folder, os.O_DIRECTORY | os.O_NOFOLLOW) or []
        except OSError as error:
            message = f"The folder cannot be listed: {error.strerror}."
            return [ItemProblem(self._name(folder), "unreadable", message, covers_subtree=True)]

    def _contents(self, folder: Path, flags: int) -> "list[_Found] | None":
        """Return what a folder holds, last first; None for one that may not be read. Raises OSError."""
        handle = os.open(folder, os.O_RDONLY | flags)
        try:
            place, facts = place_of(handle, folder), os.fstat(handle)
            # What lies above it was looked at on the way down.
            is_refused = (facts.st_dev, facts.st_ino) in self.local.identities or not self.local.allows_path(place)
            if is_refused or not place.is_relative_to(self.root.resolve()):
                return None
            return [*_backwards(handle, folder)]
        finally:
            os.close(handle)

    def _entry(self, entry: _Entry) -> SourceItem | ItemProblem:
        path = entry.path
        try:
            if entry.is_link and (problem := self._link_problem(path)):
                return problem
            if path.is_file():
                return self._file(path, self._name(path))
        except OSError as error:
            # It may be a folder: where its kind cannot be told, what was below it is not known to be gone.
            message = f"The file cannot be read: {error.strerror}."
            return ItemProblem(self._name(path), "unreadable", message, covers_subtree=True)
        return ItemProblem(self._name(path), "not_a_file", "This is neither a file nor a folder.")

    def _link_problem(self, path: Path) -> ItemProblem | None:
        """Return why a link is not followed, or None for a link to a file inside the root."""
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):
            return ItemProblem(self._name(path), "symlink", "The link leads nowhere or around in a loop.")
        if target.is_dir():
            return ItemProblem(self._name(path), "symlink", "A link to a folder is not followed.")
        try:
            self._require_inside(target)
        except ItemError as error:
            return ItemProblem(self._name(path), "symlink", str(error))
        return None

    def _file(self, path: Path, name: str) -> SourceItem | ItemProblem:
        facts = path.stat()
        if facts.st_size > self.max_bytes:
            error = too_large(facts.st_size, self.max_bytes)
            return ItemProblem(name, error.reason, str(error))
        return SourceItem(
            external_id=name,
            name=name,
            uri="",
            locator=str(path),
            modified_at=datetime.fromtimestamp(facts.st_mtime, tz=UTC),
        )

    def _name(self, path: Path) -> str:
        """Return the path below the root as text that any database takes, whatever bytes the name has."""
        return _text(path.relative_to(self.root))


def _backwards(handle: int, folder: Path) -> list[_Entry]:
    """Return what an open folder holds, last first and without hidden ones; raise OSError."""
    with os.scandir(handle) as entries:
        visible = [
            _Entry(folder / entry.name, is_folder=_is_folder(entry), is_link=entry.is_symlink())
            for entry in entries
            if not entry.name.startswith(".")
        ]
    visible.sort(key=lambda entry: entry.path.name, reverse=True)
    return visible


def _open_no_link(path: str, flags: int) -> int:
    """Open a path that was resolved: a link at its end is new and refused. A pipe is not waited for."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder; False also where that cannot be told."""
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _text(path: Path | str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")
