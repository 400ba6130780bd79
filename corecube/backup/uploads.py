"""The uploaded files of one moment, and putting them back.

An upload is replaced by renaming and deleted as a name, so a hard link preserves its content. Links are made before
the database is read, for what is deleted meanwhile, and again afterwards, for what was uploaded meanwhile.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from django.conf import settings

from corecube.backup.manifest import FileEntry
from corecube.backup.parts import PART_BYTES, Parts
from corecube.connectors.places import Place
from corecube.connectors.upload import upload_place
from corecube.errors import BackupError

_LINKS: Final = ".backup-"  #: The folder of links, on the file system of the uploads, begins with this.


class Uploads(Protocol):
    """The uploads of one moment."""

    def link(self) -> None:
        """Preserve the uploads that are there now, from now on or as far as it can be done."""

    def leave_out(self, connections: Collection[int]) -> None:
        """Leave out all connections but these."""

    def store(self, parts: Parts, *, report: Callable[[str], None]) -> tuple[FileEntry, ...]:
        """Store the files."""


@contextmanager
def preserved_uploads() -> Iterator[Uploads]:
    """Yield the uploads, wherever they are stored."""
    if place := upload_place():
        yield StoredUploads(place)
    else:
        with linked_uploads() as uploads:
            yield uploads


class StoredUploads:
    """Uploads in a bucket, which has no links: what is deleted during the backup with its connection is missing."""

    def __init__(self, place: Place) -> None:
        self._place, self._connections = place, frozenset[int]()

    def link(self) -> None:
        """Do nothing."""

    def leave_out(self, connections: Collection[int]) -> None:
        """Leave out all connections but these."""
        self._connections = frozenset(connections)

    def store(self, parts: Parts, *, report: Callable[[str], None]) -> tuple[FileEntry, ...]:
        """Store the objects."""
        found: list[FileEntry] = []
        for connection in sorted(self._connections):
            for name in sorted(self._place.names(str(connection))):
                report(f"upload {len(found) + 1}")
                if (content := self._place.read(name)) is not None:
                    blocks = (content[at : at + PART_BYTES] for at in range(0, len(content), PART_BYTES))
                    found.append(FileEntry(name, parts.write(blocks)))
        return tuple(found)


@contextmanager
def linked_uploads() -> Iterator["LinkedUploads"]:
    """Yield a folder of links to the uploads, which is removed at the end."""
    root: Path = settings.CORECUBE_UPLOADS_DIR
    root.mkdir(parents=True, exist_ok=True)
    for left in root.glob(f"{_LINKS}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=_LINKS) as folder:
        yield LinkedUploads(root, Path(folder))


class LinkedUploads:
    """Links to the uploads."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root, self._folder = root, folder

    def link(self) -> None:
        """Link the uploads that have no link yet, and those that were replaced."""
        for path in uploaded(self._root):
            target = self._folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                _link(self._root / path, target)
            except FileNotFoundError:
                continue  # deleted in the meantime

    def leave_out(self, connections: Collection[int]) -> None:
        """Remove the links of all other connections."""
        names = set(map(str, connections))
        for folder in self._folder.iterdir():
            if folder.name not in names:
                shutil.rmtree(folder)

    def store(self, parts: Parts, *, report: Callable[[str], None]) -> tuple[FileEntry, ...]:
        """Store the linked files."""
        found: list[FileEntry] = []
        for path in sorted(uploaded(self._folder)):
            report(f"upload {len(found) + 1}")
            with (self._folder / path).open("rb") as file:
                found.append(FileEntry(path, parts.write(iter(lambda: file.read(PART_BYTES), b""))))
        return tuple(found)


def uploaded(root: Path) -> Iterator[str]:
    """Yield the paths of the files below the folders of connections, except hidden and unprintable ones."""
    for folder, folders, files in os.walk(root):
        folders[:] = [it for it in folders if not it.startswith(".")]
        for name in files:
            path = Path(folder, name).relative_to(root).as_posix()
            if "/" in path and not name.startswith(".") and path.isprintable():
                yield path


def has_uploads() -> bool:
    """Return whether there are uploads. Raises UnavailableError."""
    place = upload_place()
    return bool(place.names()) if place else any(uploaded(settings.CORECUBE_UPLOADS_DIR))


def write_uploads(files: Collection[FileEntry], parts: Parts) -> None:
    """Replace all uploads; raise BackupError for a path that leads elsewhere, before anything is changed.

    Raises UnavailableError if the bucket of uploads does not store them.
    """
    root: Path = settings.CORECUBE_UPLOADS_DIR
    paths = [root / it.folder() for it in files]
    if place := upload_place():
        for name in place.names():
            place.delete(name)
        for entry in files:
            place.write(entry.path, b"".join(parts.read(entry.content)))
        return
    try:
        for left in root.iterdir() if root.exists() else ():
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        for target, entry in zip(paths, files, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                file.writelines(parts.read(entry.content))
    except OSError as error:
        raise BackupError(f"The uploads in {root} cannot be replaced: {error.strerror}.") from error


def _link(source: Path, target: Path) -> None:
    if target.exists():
        if target.samefile(source):
            return
        target.unlink()
    try:
        target.hardlink_to(source)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)  # a file system without links, or a file of another account
