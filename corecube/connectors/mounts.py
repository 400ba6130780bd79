"""Where else a folder's files show, and where the kernel shows its own: what the mounts of this machine say."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TABLE: Final = Path("/proc/self/mountinfo")
#: Filesystems whose files are the kernel's answers and not documents.
_KERNELS: Final = frozenset(
    {
        *("binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs"),
        *("fusectl", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs"),
    }
)
_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """A part of a filesystem, and where it shows."""

    device: str
    #: The mounted folder or file within its filesystem.
    root: Path
    point: Path
    kind: str


def read_mounts() -> tuple[Mount, ...]:
    """Return the mounts that this process sees, the latest last; none on a system that keeps no such table."""
    try:
        return tuple(map(_mount, _TABLE.read_bytes().splitlines()))
    except OSError:
        return ()


def points_showing(folders: Sequence[Path], mounts: Sequence[Mount]) -> Iterator[Path]:
    """Yield the mount points at which something of these folders shows, and those of the kernel's filesystems.

    A mount that shows a folder from above it is not among them: the folder itself shows in there as it is.
    """
    shown = {*_places(folders, mounts)}
    for mount in mounts:
        is_part = any(mount.device == device and mount.root.is_relative_to(place) for device, place in shown)
        if is_part or mount.kind in _KERNELS:
            yield mount.point


def _places(folders: Iterable[Path], mounts: Sequence[Mount]) -> Iterator[tuple[str, Path]]:
    """Yield where folders, and what is mounted below them, lie within their filesystems."""
    for folder in folders:
        above = [mount for mount in mounts if folder.is_relative_to(mount.point)]
        if above:
            # Of several at one point the latest covers the others.
            under = max(reversed(above), key=lambda mount: len(mount.point.parts))
            yield under.device, under.root / folder.relative_to(under.point)
        yield from ((mount.device, mount.root) for mount in mounts if mount.point.is_relative_to(folder))


def _mount(line: bytes) -> Mount:
    """Return a line of the table: numbers, device, root, point, options, a hyphen, the filesystem and its source."""
    fields = line.split(b" ")
    device, root, point = map(_unescaped, fields[2:5])
    return Mount(device, Path(root), Path(point), _unescaped(fields[fields.index(b"-", 6) + 1]))


def _unescaped(field: bytes) -> str:
    return os.fsdecode(_ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), field))
