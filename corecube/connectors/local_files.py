"""Files on this machine that connections may read: those below the allowed folders, except CoreCube's own files.

Paths are checked after links are resolved. Refused files are recognised by path, by device and inode, and by the
mount table, so that links, bind mounts and hard links do not lead around the check.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self, TypeAlias

from django.conf import settings

from corecube.env import files_named
from corecube.errors import ConfigError

_Identity: TypeAlias = tuple[int, int]

#: System folders that no connection reads.
SYSTEM_FOLDERS: Final = tuple(map(Path, ("/dev", "/etc", "/proc", "/sys")))
_MOUNT_TABLE: Final = Path("/proc/self/mountinfo")
#: Filesystems whose files are kernel data, not documents.
_KERNEL_FILESYSTEMS: Final = frozenset(
    {
        *("binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs"),
        *("fusectl", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs"),
    }
)
_OCTAL_ESCAPE: Final = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The files that a connection may read."""

    roots: tuple[Path, ...] = ()
    #: Real paths, each with a slash at its end; they and everything below them are refused.
    refused: tuple[str, ...] = ()
    identities: frozenset[_Identity] = frozenset()  #: Device and inode of the refused files and folders.
    refuses_hidden: bool = True  #: Whether paths with a hidden part below their root are refused.

    def allows(self, place: Path, *, shown: Collection[str] = ()) -> bool:
        """Return whether a real path may be read; the names in `shown` do not count as hidden."""
        if not self.allows_path(place, shown=shown):
            return False
        return not self.identities or not any(identity(it) in self.identities for it in (place, *place.parents))

    def allows_path(self, place: Path, *, shown: Collection[str] = ()) -> bool:
        """Return whether a real path may be read, by its name alone."""
        below = (place.relative_to(root).parts for root in self.roots if place.is_relative_to(root))
        is_below = any(not self.refuses_hidden or not _is_hidden(parts, shown) for parts in below)
        return is_below and not f"{place}/".startswith(self.refused)

    def without(self, refused: Sequence[Path]) -> Self:
        """Return a copy that refuses these files and folders, given as real paths."""
        identities = frozenset(filter(None, map(identity, refused)))
        return replace(self, refused=tuple(f"{it}/" for it in refused), identities=identities)

    def require(self, path: Path, *, shown: Collection[str] = ()) -> None:
        """Raise ConfigError for a path that may not be read; the message is the same for missing files."""
        try:
            place = _real(path)
        except ValueError as error:
            raise ConfigError("The path contains an invalid character.") from error
        if not self.allows(place, shown=shown):
            raise ConfigError(self.refusal)

    @property
    def refusal(self) -> str:
        """The error message for a path that may not be read; it does not offer the folder of the samples."""
        samples = _real(settings.CORECUBE_SAMPLES_DIR)
        roots = ", ".join(str(it) for it in self.roots if it != samples) or "an allowed folder"
        return (
            f"Connections may not read this path. Choose one below {roots}, or add its folder to the setting"
            " CORECUBE_FOLDER_ROOTS. Hidden folders below these, CoreCube's own data, /dev, /etc, /proc and /sys are"
            " refused."
        )


NO_FILES: Final = LocalFiles()
#: For commands: they read everything that their user account may read.
EVERY_FILE: Final = LocalFiles(roots=(Path("/"),), refuses_hidden=False)


def local_files() -> LocalFiles:
    """Return the files that connections may read by the settings."""
    roots = (*settings.CORECUBE_FOLDER_ROOTS, settings.CORECUBE_SAMPLES_DIR)
    return LocalFiles(tuple(map(_real, roots))).without(_refused_paths())


def command_files(path: str) -> LocalFiles:
    """Return the files that a connection may read whose path a command chose: all below it, wherever it is."""
    root = _real(Path(path))
    return LocalFiles((root,), refuses_hidden=False).without(_refused_paths(except_parents_of=root))


def _refused_paths(except_parents_of: Path | None = None) -> list[Path]:
    """Return the real paths of the files that are always refused, and the mount points that show them."""

    def is_parent(folder: Path) -> bool:
        return except_parents_of is not None and except_parents_of.is_relative_to(folder)

    var = _real(settings.CORECUBE_VAR_DIR)
    backups = [_real(Path(it))] if (it := settings.CORECUBE_BACKUP_TO).startswith("/") else []
    folders = [it for it in (var, *backups, *map(_real, SYSTEM_FOLDERS)) if not is_parent(it)]
    files = list(map(_real, files_named()))
    shown = points_showing([*folders, *files], read_mounts())
    var_files: list[Path] = []
    if var in folders:
        # A hard link to one of these may be elsewhere.
        with os.scandir(var) as entries:
            var_files = [Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False)]
    return list(dict.fromkeys(it for it in (*folders, *files, *var_files, *shown) if not is_parent(it)))


def identity(path: Path) -> _Identity | None:
    """Return the device and inode of a file or folder; None if it cannot be read."""
    try:
        facts = path.stat()
    except (OSError, ValueError):
        return None
    return facts.st_dev, facts.st_ino


def real_path_of(handle: int, opened: Path) -> Path:
    """Return the real path of an open file: from the kernel where possible, else by resolving the given path."""
    try:
        return Path(os.readlink(f"/proc/self/fd/{handle}"))  # noqa: PTH115 -- pathlib reads it no better
    except OSError:
        return _real(opened)


@dataclass(frozen=True, slots=True)
class Mount:
    """A part of a filesystem, and its mount point."""

    device: str
    root: Path  #: The mounted folder or file within its filesystem.
    point: Path
    kind: str


def read_mounts() -> tuple[Mount, ...]:
    """Return the mounts of this process, the latest last; empty on a system without a mount table."""
    try:
        return tuple(map(_mount, _MOUNT_TABLE.read_bytes().splitlines()))
    except OSError:
        return ()


def points_showing(folders: Sequence[Path], mounts: Sequence[Mount]) -> Iterator[Path]:
    """Yield the mount points that show a part of these folders, and those of kernel filesystems.

    A mount of a parent folder is not yielded: the folder has its usual path below that mount point.
    """
    shown = {*_filesystem_paths(folders, mounts)}
    for mount in mounts:
        is_part = any(mount.device == device and mount.root.is_relative_to(path) for device, path in shown)
        if is_part or mount.kind in _KERNEL_FILESYSTEMS:
            yield mount.point


def _filesystem_paths(folders: Iterable[Path], mounts: Sequence[Mount]) -> Iterator[tuple[str, Path]]:
    """Yield device and path within its filesystem of each folder, and of each mount below it."""
    for folder in folders:
        above = [mount for mount in mounts if folder.is_relative_to(mount.point)]
        if above:
            # If several mounts share a point, the latest covers the others.
            under = max(reversed(above), key=lambda mount: len(mount.point.parts))
            yield under.device, under.root / folder.relative_to(under.point)
        yield from ((mount.device, mount.root) for mount in mounts if mount.point.is_relative_to(folder))


def _mount(line: bytes) -> Mount:
    """Parse a line of the table: numbers, device, root, point, options, a hyphen, the filesystem and its source."""
    fields = line.split(b" ")
    device, root, point, kind = (
        os.fsdecode(_OCTAL_ESCAPE.sub(lambda found: bytes([int(found[1], 8)]), field))
        for field in (*fields[2:5], fields[fields.index(b"-", 6) + 1])
    )
    return Mount(device, Path(root), Path(point), kind)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_hidden(parts: Sequence[str], shown: Collection[str]) -> bool:
    return any(part.startswith(".") and part not in shown for part in parts)
