"""Processes of an embedded server: its main process by the PID file, and orphans whose main process was killed."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from corecube.embedded.install import WORKING_FOLDER

PORT: Final = "5432"
#: Lines of `postmaster.pid`, counted from 0.
_PID, _SOCKET_DIR, _STATUS = 0, 4, 7


@dataclass(frozen=True, slots=True)
class Postmaster:
    """The content of a pid file; the process may be gone."""

    pid: int
    socket_dir: str
    status: str

    def accepts(self) -> bool:
        """Return whether the server takes connections now."""
        if self.status != "ready":
            return False
        with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
            probe.connect(str(Path(self.socket_dir) / f".s.PGSQL.{PORT}"))
            return True
        return False

    def stop(self) -> None:
        """Ask for a fast shutdown: sessions end, nothing that was committed is lost."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGINT)


def read_postmaster(data_dir: Path) -> Postmaster | None:
    """Return what the pid file says, or None when there is none or it is not whole yet."""
    try:
        lines = (data_dir / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        socket_dir = lines[_SOCKET_DIR].strip()
        at = str(data_dir) if socket_dir == WORKING_FOLDER else socket_dir
        return Postmaster(int(lines[_PID]), at, lines[_STATUS].strip())
    except (FileNotFoundError, IndexError, ValueError):
        return None


def drop_reused_pid(data_dir: Path) -> None:
    """Remove the pid files of a server that is gone when its number is another process's now.

    That happens when a container restarts. PostgreSQL would take that process for a running server; a
    number that nobody has, it judges itself. Call it with no process of an earlier server left.
    """
    postmaster = read_postmaster(data_dir)
    if postmaster and _is_alive(postmaster.pid) and _is_not_server(postmaster.pid, data_dir):
        for name in ("postmaster.pid", f".s.PGSQL.{PORT}.lock"):
            (data_dir / name).unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    """Return whether there is a process with this number, anybody's."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_not_server(pid: int, data_dir: Path) -> bool:
    """Return whether the process surely is not this directory's server: PostgreSQL works inside its data."""
    if not Path("/proc/self/cwd").exists():
        return False
    try:
        return Path(f"/proc/{pid}/cwd").resolve(strict=True) != data_dir.resolve()
    except OSError:
        return True  # another user's process, or a dead one that nobody has collected


_PROCESSES: Final = Path("/proc")


def cluster_name(data_dir: Path) -> str:
    """Return what the server of a data directory is called in the titles of its processes."""
    facts = data_dir.stat()
    return f"corecube-{facts.st_dev:x}-{facts.st_ino:x}"


def end_orphans(data_dir: Path, uid: int) -> int:
    """Kill the user's processes of this server that outlived its main process; return how many there were.

    Nothing is lost that was committed: the next start recovers it. Without /proc none is found.
    """
    found = list(_orphans(cluster_name(data_dir), uid))
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(found)


def _orphans(cluster: str, uid: int) -> Iterator[int]:
    for folder in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            is_child = _command(folder).startswith(f"postgres: {cluster}:")
            if is_child and folder.stat().st_uid == uid and not _is_main(_parent(folder), cluster):
                yield int(folder.name)


def _is_main(folder: Path, cluster: str) -> bool:
    """Return whether a process is the server's main one, which was started with the cluster's name."""
    try:
        return f"cluster_name={cluster}\0" in _command(folder)
    except OSError:
        return False


def _command(folder: Path) -> str:
    return (folder / "cmdline").read_bytes().decode("utf-8", "replace")


def _parent(folder: Path) -> Path:
    # The name, in brackets, may hold anything; behind it stand the state and the parent.
    state_and_on = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    return _PROCESSES / state_and_on[1]
