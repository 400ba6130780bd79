"""Memory and CPU time of this process, of the web server and of the database server, as the system reports them."""

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from django.db import connection

_PROC: Final = Path("/proc")
_UNIT: Final = 1024
#: Of the fields behind the program's name in `stat` (proc(5)): user and system time, and those of ended children.
_CPU_FIELDS: Final = slice(11, 15)


class CpuMeter:
    """Measures the CPU time of a process and of the database server from its construction on."""

    def __init__(self, pid: int) -> None:
        self._pids = {"own": pid}
        if (server := server_pid()) is not None:
            self._pids["server"] = server
        self._before = self._seconds()

    def per_search(self, searches: int) -> dict[str, float]:
        """Return CPU milliseconds per search: "own" with its children, "server", "total".

        Only "own" where the server is on another machine.
        """
        before, after = self._before, self._seconds()
        cpu_ms = {name: round((after[name] - before[name]) * 1000 / searches, 3) for name in after}
        return {**cpu_ms, "total": round(sum(cpu_ms.values()), 3)} if "server" in cpu_ms else cpu_ms

    def _seconds(self) -> dict[str, float]:
        return {name: cpu_seconds(pid) for name, pid in self._pids.items()}


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its children, ended ones included; 0 if the system does not report it."""
    ticks = sum(sum(map(int, stat_fields(it)[_CPU_FIELDS])) for it in (pid, *_children(pid)))
    return ticks / os.sysconf("SC_CLK_TCK")


def own_bytes() -> int:
    """Return the proportional set size of this process in bytes; 0 if the system does not report it."""
    return _field(_PROC / "self" / "smaps_rollup", "Pss:")


def peak_rss_bytes() -> int:
    """Return the peak resident memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def server_bytes() -> int | None:
    """Return the bytes of the server's processes without file cache, shared ones once; None if they are not local."""
    postmaster = server_pid()
    if postmaster is None:
        return None
    files = [_PROC / str(it) / "smaps_rollup" for it in (postmaster, *_children(postmaster))]
    # Proportional set sizes divide shared pages among their processes. They do not include huge pages.
    sizes = [_field(file, "Pss:") for file in files]
    large = max(_field(file, "Shared_Hugetlb:") + _field(file, "Private_Hugetlb:") for file in files)
    return sum(sizes) + large if sizes[0] else None


def server_pid() -> int | None:
    """Return the id of the database server's main process; None if it is not on this machine."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = int(cursor.fetchone()[0])
    try:
        name = (_PROC / str(pid) / "comm").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return _parent(pid) if name == "postgres" else None


def _children(pid: int) -> Iterator[int]:
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    return (it for it in pids if _parent(it) == pid)


def _parent(pid: int) -> int:
    return _field(_PROC / str(pid) / "status", "PPid:", unit=1)


def stat_fields(pid: int) -> list[str]:
    """Return a process's fields in `stat` (proc(5)) from the third on; none if the system does not report them."""
    with suppress(OSError):
        # The program's name may contain anything.
        return (_PROC / str(pid) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return []


def _field(file: Path, name: str, *, unit: int = _UNIT) -> int:
    with suppress(OSError, ValueError, IndexError):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * unit
    return 0
