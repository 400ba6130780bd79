"""A folder on this machine with its subfolders."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, Self, TypeAlias

from pydantic import ConfigDict, Field

from corecube.connectors.globs import EVERYTHING, Globs
from corecube.connectors.local_files import EVERY_FILE, LocalFiles, real_path_of
from corecube.connectors.setup import FieldError, SourceConfig, SourceSetup, too_large
from corecube.connectors.types import Capability, ItemError, ItemProblem, SourceItem
from corecube.errors import ConfigError

_MAX_COUNTED: Final = 1000  #: Files that a check counts.
#: Errors of a locked file, an unavailable network drive or a busy machine: a retry may help.
_TEMPORARY: Final = frozenset(
    {errno.EAGAIN, errno.EBUSY, errno.ETXTBSY, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EMFILE, errno.ENFILE}
)


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    is_folder: bool
    is_link: bool


_Found: TypeAlias = _Entry | ItemProblem


class FolderConfig(SourceConfig):
    """The folder of a connection."""

    model_config = ConfigDict(extra="ignore")

    path: Any = Field(
        None, description="Absolute path on the server, below one of CORECUBE_FOLDER_ROOTS. Subfolders are included."
    )


@dataclass(frozen=True, slots=True)
class FolderConnector:
    """Reads the files below `root`, sorted by path, without hidden files and folders.

    Nothing outside the root, and nothing that `local` refuses, is ever read: links to folders are not followed, and
    links to files only if the file is inside the root. If the root is a file, it is the only item.
    """

    root: Path
    max_bytes: int
    globs: Globs = EVERYTHING
    local: LocalFiles = EVERY_FILE

    @classmethod
    def from_setup(cls, setup: SourceSetup) -> Self:
        """Return the connector of a connection; raise ConfigError."""
        config = setup.read(FolderConfig)
        if not isinstance(config.path, str) or not config.path:
            raise FieldError("path", "A folder connection needs a path.")
        try:
            root = Path(config.path).expanduser().absolute()
        except RuntimeError as error:
            raise FieldError("path", f"There is no home folder for this path: {config.path}.") from error
        try:
            setup.local.require(root)
        except ConfigError as error:
            raise FieldError("path", str(error)) from error
        return cls(root, setup.limit(config.max_bytes), config.globs(), setup.local)

    def preflight(self) -> Iterator[Capability]:
        """Yield whether the root can be read, and how many files it has."""
        try:
            self.check()
            files = sum(isinstance(it, SourceItem) for it in islice(self.items(), _MAX_COUNTED))
        except ConfigError as error:
            yield Capability.failed("read", str(error))
        else:
            found = (
                f"{_MAX_COUNTED:,} files or more" if files == _MAX_COUNTED else f"{files:,} file{'s' * (files != 1)}"
            )
            yield Capability.passed("read", f"{found} found.")

    def check(self) -> None:
        """Raise ConfigError if the root is missing or cannot be listed."""
        if not os.access(self.root, os.R_OK | (os.X_OK if self._root_is_folder() else 0)):
            raise ConfigError(f"{self.root} cannot be read by this process.")

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the files and the problems below the root; raise ConfigError if the root cannot be listed."""
        if self._root_is_folder():
            yield from self._below_root()
        else:
            yield self._file(self.root, _text(self.root.name))

    def read(self, item: SourceItem) -> bytes:
        """Return a file's bytes; raise ItemError if it is too large, deleted or unreadable."""
        try:
            with self._open(Path(item.locator)) as file:
                if (size := os.fstat(file.fileno()).st_size) > self.max_bytes:
                    raise too_large(size, self.max_bytes)
                return file.read()
        except OSError as error:
            if not self.root.exists():
                # Another worker may have the folder: the item is retried.
                raise ItemError("unavailable", self.missing_message()) from error
            if isinstance(error, FileNotFoundError):
                raise ItemError("gone", "The file was deleted after it was listed.") from error
            reason = "unavailable" if error.errno in _TEMPORARY else "unreadable"
            raise ItemError(reason, f"The file cannot be read: {error.strerror}.") from error

    def missing_message(self) -> str:
        """Return the error message for a machine without the root."""
        return f"{self.root} does not exist on this machine. Every worker needs the folder at the same path."

    def _open(self, path: Path) -> IO[bytes]:
        """Open a file inside the root; raise ItemError if it was replaced by something else."""
        try:
            target = path.resolve(strict=True)
        except RuntimeError as error:
            raise ItemError("symlink", "The link is circular.") from error
        if not target.is_relative_to(self.root.resolve()):
            raise ItemError("symlink", "The link target is outside the source's folder.")
        with ExitStack() as opened:
            # A new link at the path's end is refused, and a pipe does not block.
            flags = os.O_NOFOLLOW | os.O_NONBLOCK
            file = opened.enter_context(open(target, "rb", opener=lambda name, mode: os.open(name, mode | flags)))
            # A parent folder may have been replaced by a link; the path of the open file is certain.
            self._require_inside(real_path_of(file.fileno(), target))
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ItemError("not_a_file", "This is no longer a file.")
            opened.pop_all()
        return file

    def _require_inside(self, place: Path) -> None:
        if not place.is_relative_to(self.root.resolve()):
            raise ItemError("symlink", "The link target is outside the source's folder.")
        if not self.local.allows(place):
            raise ItemError("not_allowed", "Connections may not read this file.")

    def _root_is_folder(self) -> bool:
        """Return True for a folder, False for a file; raise ConfigError if it is neither or may not be read."""
        self.local.require(self.root)
        try:
            mode = self.root.stat().st_mode
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ConfigError(f"{self.root} does not exist.") from error
        except OSError as error:
            raise ConfigError(f"{self.root} cannot be read by this process: {error.strerror}.") from error
        except ValueError as error:
            raise ConfigError("The path contains an invalid character.") from error
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
        # A stack instead of recursion: a tree may be deeper than Python's recursion limit.
        while waiting:
            found = waiting.pop()
            if isinstance(found, _Entry) and found.is_folder:
                waiting += self._folder(found.path)
                continue
            result = found if isinstance(found, ItemProblem) else self._entry(found)
            if isinstance(result, ItemProblem) and result.covers_subtree:
                # Include patterns may match below it, so only an exclude pattern drops it.
                if not self.globs.excludes(result.external_id):
                    yield result
            elif self.globs.includes(result.external_id):
                yield result

    def _folder(self, folder: Path) -> "list[_Found]":
        try:
            return self._contents(folder, os.O_DIRECTORY | os.O_NOFOLLOW) or []
        except OSError as error:
            message = f"The folder cannot be listed: {error.strerror}."
            return [ItemProblem(self._name(folder), "unreadable", message, covers_subtree=True)]

    def _contents(self, folder: Path, flags: int) -> "list[_Found] | None":
        """Return a folder's entries, last first; None for one that may not be read. Raises OSError."""
        handle = os.open(folder, os.O_RDONLY | flags)
        try:
            place, facts = real_path_of(handle, folder), os.fstat(handle)
            # Its parent folders were checked on the way down.
            is_refused = (facts.st_dev, facts.st_ino) in self.local.identities or not self.local.allows_path(place)
            if is_refused or not place.is_relative_to(self.root.resolve()):
                return None
            return [*_visible_entries(handle, folder)]
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
            # It may be a folder of an unknown state, so its items must not count as deleted.
            message = f"The file cannot be read: {error.strerror}."
            return ItemProblem(self._name(path), "unreadable", message, covers_subtree=True)
        return ItemProblem(self._name(path), "not_a_file", "This is neither a file nor a folder.")

    def _link_problem(self, path: Path) -> ItemProblem | None:
        """Return the reason not to follow a link, or None for a link to a file inside the root."""
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):
            return ItemProblem(self._name(path), "symlink", "The link is broken or circular.")
        if target.is_dir():
            return ItemProblem(self._name(path), "symlink", "Links to folders are not followed.")
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
        """Return the path below the root as valid UTF-8 text, whatever bytes the name has."""
        return _text(path.relative_to(self.root))


def _visible_entries(handle: int, folder: Path) -> list[_Entry]:
    with os.scandir(handle) as entries:
        visible = [
            _Entry(folder / entry.name, is_folder=_is_folder(entry), is_link=entry.is_symlink())
            for entry in entries
            if not entry.name.startswith(".")
        ]
    visible.sort(key=lambda entry: entry.path.name, reverse=True)
    return visible


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _text(path: Path | str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")
