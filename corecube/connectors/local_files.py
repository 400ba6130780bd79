"""Which of this machine's files connections may read: those below the allowed folders, and never CoreCube's own.

A path is judged by where it really leads. What is refused is known by its path, by its device and inode, and by the
mounts that show it, so that it is refused through a link, a bind mount or a hard link too.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self, TypeAlias

from django.conf import settings

from corecube.connectors.mounts import points_showing, read_mounts
from corecube.env import files_named
from corecube.errors import ConfigError

_Identity: TypeAlias = tuple[int, int]

#: Folders of the system that no connection reads.
SYSTEM_FOLDERS: Final = tuple(map(Path, ("/dev", "/etc", "/proc", "/sys")))


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The files that a connection may read."""

    #: Real paths.
    roots: tuple[Path, ...] = ()
    #: Real paths that are refused with everything below them, each with a slash at its end.
    refused: tuple[str, ...] = ()
    #: Device and inode of what is refused.
    identities: frozenset[_Identity] = frozenset()
    #: Whether what has a hidden part below its root is refused.
    hides: bool = True

    def allows(self, place: Path, *, shown: Collection[str] = ()) -> bool:
        """Return whether a real path may be read; the names in `shown` do not count as hidden."""
        if not self.allows_path(place, shown=shown):
            return False
        return not self.identities or not any(identity(it) in self.identities for it in (place, *place.parents))

    def allows_path(self, place: Path, *, shown: Collection[str] = ()) -> bool:
        """Return whether a real path may be read as far as its words tell."""
        below = (place.relative_to(root).parts for root in self.roots if place.is_relative_to(root))
        is_below = any(not self.hides or not _is_hidden(parts, shown) for parts in below)
        return is_below and not f"{place}/".startswith(self.refused)

    def without(self, refused: Sequence[Path]) -> Self:
        """Return the same less these files and folders, which must be real paths."""
        identities = frozenset(filter(None, map(identity, refused)))
        return replace(self, refused=tuple(f"{it}/" for it in refused), identities=identities)

    def require(self, path: Path, *, shown: Collection[str] = ()) -> None:
        """Raise ConfigError for a path that may not be read, in the same words whether or not something is there."""
        try:
            place = Path(os.path.realpath(path))
        except ValueError as error:
            raise ConfigError("The path holds a character that no path can hold.") from error
        if not self.allows(place, shown=shown):
            raise ConfigError(self.refusal)

    @property
    def refusal(self) -> str:
        """What is said of a path that may not be read."""
        roots = ", ".join(map(str, self.roots)) or "an allowed folder"
        return (
            f"Connections may not read this path. Choose one below {roots}, or name its folder in the setting"
            " CORECUBE_FOLDER_ROOTS. Hidden folders below these, CoreCube's own data, /dev, /etc, /proc and /sys are"
            " refused."
        )


NO_FILES: Final = LocalFiles()
#: For commands, which read what the account that runs them may read.
EVERY_FILE: Final = LocalFiles(roots=(Path("/"),), hides=False)


def local_files() -> LocalFiles:
    """Return what connections may read by the settings."""
    roots = (*settings.CORECUBE_FOLDER_ROOTS, settings.CORECUBE_SAMPLES_DIR)
    return LocalFiles(tuple(map(_real, roots))).without(refused_places())


def command_files(path: str) -> LocalFiles:
    """Return what a connection may read whose path a command chose: the files below it, wherever they lie."""
    root = _real(Path(path))
    return LocalFiles((root,), hides=False).without(refused_places(beside=root))


def refused_places(beside: Path | None = None) -> list[Path]:
    """Return the real paths of what is refused in any case, also where else it is mounted.

    Folders that a path `beside` lies in are not among them.
    """
    own = _real(settings.CORECUBE_VAR_DIR)
    folders = [it for it in (own, *map(_real, SYSTEM_FOLDERS)) if not _lies_in(beside, it)]
    files = list(map(_real, files_named()))
    shown = points_showing([*folders, *files], read_mounts())
    own_files = _files_in(own) if own in folders else ()
    return list(dict.fromkeys(it for it in (*folders, *files, *own_files, *shown) if not _lies_in(beside, it)))


def identity(path: Path) -> _Identity | None:
    """Return what tells a file or folder from others whatever its path is; None for one that cannot be looked at."""
    try:
        facts = path.stat()
    except (OSError, ValueError):
        return None
    return facts.st_dev, facts.st_ino


def place_of(handle: int, opened: Path) -> Path:
    """Return the real path of an open file, by the kernel's word where the system gives it."""
    try:
        return Path(os.readlink(f"/proc/self/fd/{handle}"))  # noqa: PTH115 -- pathlib reads it no better
    except OSError:
        return _real(opened)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _lies_in(path: Path | None, folder: Path) -> bool:
    return path is not None and path.is_relative_to(folder)


def _is_hidden(parts: Sequence[str], shown: Collection[str]) -> bool:
    return any(part.startswith(".") and part not in shown for part in parts)


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder itself, of which a hard link may lie elsewhere."""
    with os.scandir(folder) as entries:
        yield from (Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False))
