"""What this process and the database server hold in memory."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from django.db import connection

_PROC: Final = Path("/proc")
_SERVER: Final = "postgres"
_UNIT: Final = 1024


def process_bytes() -> int:
    """Return the bytes that this process has resident now; 0 where the system does not tell."""
    return _field(_PROC / "self" / "status", "VmRSS:")


def own_bytes() -> int:
    """Return the same less what it shares with others, whose parts are divided; 0 where the system does not tell."""
    return _field(_PROC / "self" / "smaps_rollup", "Pss:")


def server_bytes() -> int | None:
    """Return the bytes of all processes of the server, what they share counted once.

    None for a server on another machine, or one whose processes may not be looked at. The system's cache of files,
    which it gives up for whoever needs memory, is not in it.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = int(cursor.fetchone()[0])
    if _name(pid) != _SERVER:
        return None
    postmaster = _parent(pid)
    files = [_PROC / str(it) / "smaps_rollup" for it in (postmaster, *_children(postmaster))]
    # Proportional set sizes: shared pages are divided among those who have them. Large pages are in none of them.
    sizes = [_field(file, "Pss:") for file in files]
    large = max(_field(file, "Shared_Hugetlb:") + _field(file, "Private_Hugetlb:") for file in files)
    return sum(sizes) + large if sizes[0] else None


def _children(parent: int) -> Iterator[int]:
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and _parent(int(entry.name)) == parent:
            yield int(entry.name)


def _parent(pid: int) -> int:
    return _field(_PROC / str(pid) / "status", "PPid:", unit=1)


def _name(pid: int) -> str:
    with suppress(OSError):
        return (_PROC / str(pid) / "comm").read_text(encoding="utf-8").strip()
    return ""


def _field(file: Path, name: str, *, unit: int = _UNIT) -> int:
    """Return a number of a file of the kernel's, 0 when it is not there."""
    with suppress(OSError, ValueError, IndexError):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * unit
    return 0
