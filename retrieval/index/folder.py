"""The place of a read model: a folder with numbered builds, and a pointer to the one that is searched. No Django.

    CURRENT      the number of the build that is searched; written whole or not at all
    ID           what this folder is called among those that follow the database
    lock         held by the writing process
    7/           a build: the read model's files, and about.json, which says what it was made from

A build that CURRENT does not name is being written, or was cut off; the next writer removes it.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from corecube.process import open_lock, try_exclusive

CURRENT: Final = "CURRENT"
ABOUT: Final = "about.json"
#: What a build was made from, by name; one of something else cannot be followed.
About = Mapping[str, Any]
#: What a file looks like when it is another one: (inode, time of the last change, size).
Look = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of one installation's read model on this machine."""

    path: Path

    @property
    def id(self) -> str:
        """Its name among the followers, generated at the first use."""
        file = self.path / "ID"
        if not file.exists():
            self.path.mkdir(parents=True, exist_ok=True)
            write_atomically(file, uuid4().hex[:8])
        return file.read_text(encoding="utf-8").strip()

    @property
    def current(self) -> Path | None:
        """The build that is searched; None when there is none."""
        try:
            number = (self.path / CURRENT).read_text(encoding="utf-8").strip()
        except OSError:
            return None
        build = self.path / number
        return build if number.isdigit() and build.is_dir() else None

    def about(self, build: Path) -> About | None:
        """Return what a build was made from; None where it does not say."""
        try:
            found = json.loads((build / ABOUT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold the folder for writing; False, at once, while another process or thread does."""
        lock = open_lock(self.path / "lock")
        try:
            yield try_exclusive(lock)
        finally:
            os.close(lock)

    def begin(self, about: About) -> Path:
        """Return a new, empty build that is not searched yet. The caller must have the lock."""
        self.clear()
        build = self.path / str(1 + max(self._numbers(), default=0))
        build.mkdir()
        write_atomically(build / ABOUT, json.dumps(about))
        return build

    def switch(self, build: Path) -> None:
        """Activate a build for searches and remove the previous one. The caller must have the lock."""
        write_atomically(self.path / CURRENT, build.name)
        self.clear()

    def size(self) -> int:
        """Return the bytes of the build that is searched."""
        build = self.current
        total = 0
        for file in build.iterdir() if build else ():
            with suppress(OSError):  # merged away meanwhile
                total += file.stat().st_size
        return total

    def clear(self) -> None:
        """Remove all inactive builds; open readers continue to work. The caller must have the lock."""
        current = self.current
        for number in self._numbers():
            if current is None or current.name != str(number):
                shutil.rmtree(self.path / str(number), ignore_errors=True)

    def _numbers(self) -> list[int]:
        return [int(it.name) for it in self.path.iterdir() if it.name.isdigit()]


def write_atomically(file: Path, text: str) -> None:
    """Write a small file atomically, also after a loss of power."""
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    with draft.open("w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(file)
    wait_for_disk(file.parent)


def wait_for_disk(path: Path) -> None:
    """Return when the disk holds a file's content, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def look(file: Path) -> Look:
    """Return what tells a file from what is written in its place; raise OSError without one."""
    found = file.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size
