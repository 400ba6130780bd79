"""A folder on this machine's disk, with its subfolders."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from django.conf import settings

from corecube.connectors.types import ItemError, ItemProblem, SourceItem
from corecube.errors import ConfigError
from corecube.models import Connection


@dataclass(frozen=True, slots=True)
class FolderConnector:
    """Reads the files below `root`, sorted by path. Hidden files and folders are left out.

    Nothing outside the root is ever read: a link to a folder is not followed, and a link to a file counts
    only when the file lies inside. A root that is a file stands for itself.
    """

    root: Path
    max_bytes: int

    @classmethod
    def for_connection(cls, connection: Connection) -> Self:
        """Return the connector of a connection whose config holds `path`; raise ConfigError without one."""
        path = connection.config.get("path")
        if not isinstance(path, str) or not path:
            raise ConfigError("A folder connection needs a path.")
        return cls(Path(path).expanduser().absolute(), settings.CORECUBE_MAX_FILE_BYTES)

    def check(self) -> None:
        """Raise ConfigError when the root is missing or cannot be listed."""
        if not self.root.exists():
            message = f"There is nothing at {self.root}."
            raise ConfigError(message)
        if not os.access(self.root, os.R_OK | (os.X_OK if self.root.is_dir() else 0)):
            message = f"{self.root} cannot be read by this process."
            raise ConfigError(message)

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the files and the problems below the root."""
        if self.root.is_file():
            yield self._file(self.root, self.root.name)
        else:
            yield from self._folder(self.root)

    def read(self, item: SourceItem) -> bytes:
        """Return a file's bytes; raise ItemError for one that is too large, gone or not readable."""
        path = Path(item.locator)
        try:
            if (size := path.stat().st_size) > self.max_bytes:
                raise _too_large(size, self.max_bytes)
            return path.read_bytes()
        except OSError as error:
            raise ItemError("unreadable", f"The file cannot be read: {error.strerror}.") from error

    def _folder(self, folder: Path) -> Iterator[SourceItem | ItemProblem]:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            yield ItemProblem(self._name(folder), "unreadable", f"The folder cannot be listed: {error.strerror}.")
            return
        for entry in entries:
            if not entry.name.startswith("."):
                yield from self._entry(entry)

    def _entry(self, entry: os.DirEntry[str]) -> Iterator[SourceItem | ItemProblem]:
        path = Path(entry.path)
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from self._folder(path)
            elif entry.is_symlink() and (problem := self._link_problem(path)):
                yield problem
            elif entry.is_file():
                yield self._file(path, self._name(path))
            else:
                yield ItemProblem(self._name(path), "not_a_file", "This is neither a file nor a folder.")
        except OSError as error:
            yield ItemProblem(self._name(path), "unreadable", f"The file cannot be read: {error.strerror}.")

    def _link_problem(self, path: Path) -> ItemProblem | None:
        """Return why a link is not followed, or None for a link to a file inside the root."""
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):
            return ItemProblem(self._name(path), "symlink", "The link leads nowhere or around in a loop.")
        if target.is_dir():
            return ItemProblem(self._name(path), "symlink", "A link to a folder is not followed.")
        if not target.is_relative_to(self.root.resolve()):
            return ItemProblem(self._name(path), "symlink", "The link leads out of the source's folder.")
        return None

    def _file(self, path: Path, name: str) -> SourceItem | ItemProblem:
        facts = path.stat()
        if facts.st_size > self.max_bytes:
            error = _too_large(facts.st_size, self.max_bytes)
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
        return os.fsencode(path.relative_to(self.root)).decode("utf-8", "backslashreplace")


def _too_large(size: int, most: int) -> ItemError:
    return ItemError("too_large", f"The file has {size / 2**20:.1f} MB; the most is {most / 2**20:.1f} MB.")
