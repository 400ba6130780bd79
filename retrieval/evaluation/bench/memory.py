"""Memory of this process and of the database server."""

from contextlib import suppress
from pathlib import Path
from typing import Final

from django.db import connection

_PROC: Final = Path("/proc")
_SERVER: Final = "postgres"
_UNIT: Final = 1024


def own_bytes() -> int:
    """Return the proportional set size of this process in bytes; 0 if the system does not report it."""
    return _field(_PROC / "self" / "smaps_rollup", "Pss:")


def server_bytes() -> int | None:
    """Return the bytes of the server's processes without file cache, shared ones once; None if they are not local."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = int(cursor.fetchone()[0])
    try:
        name = (_PROC / str(pid) / "comm").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    if name != _SERVER:
        return None
    postmaster = _parent(pid)
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    files = [_PROC / str(it) / "smaps_rollup" for it in (postmaster, *(it for it in pids if _parent(it) == postmaster))]
    # Proportional set sizes divide shared pages among their processes. They do not include huge pages.
    sizes = [_field(file, "Pss:") for file in files]
    large = max(_field(file, "Shared_Hugetlb:") + _field(file, "Private_Hugetlb:") for file in files)
    return sum(sizes) + large if sizes[0] else None


def _parent(pid: int) -> int:
    return _field(_PROC / str(pid) / "status", "PPid:", unit=1)


def _field(file: Path, name: str, *, unit: int = _UNIT) -> int:
    with suppress(OSError, ValueError, IndexError):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * unit
    return 0
