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
#: Lines of `postmaster.pid`, from 0.
_PID, _SOCKET_DIR, _STATUS = 0, 4, 7
_PROCESSES: Final = Path("/proc")


@dataclass(frozen=True, slots=True)
class Postmaster:
    """The content of a PID file, whose process may have ended."""

    pid: int
    socket_dir: str
    status: str

    def accepts(self) -> bool:
        """Return whether the server accepts connections."""
        if self.status != "ready":
            return False
        with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
            probe.connect(str(Path(self.socket_dir) / f".s.PGSQL.{PORT}"))
            return True
        return False

    def stop(self) -> None:
        """Request a fast shutdown, without loss of committed data."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGINT)


def read_postmaster(data_dir: Path) -> Postmaster | None:
    """Return the content of the PID file; None for a missing or incomplete one."""
    try:
        lines = (data_dir / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        socket_dir = lines[_SOCKET_DIR].strip()
        at = str(data_dir) if socket_dir == WORKING_FOLDER else socket_dir
        return Postmaster(int(lines[_PID]), at, lines[_STATUS].strip())
    except (FileNotFoundError, IndexError, ValueError):
        return None


def drop_reused_pid(data_dir: Path) -> None:
    """Remove the PID files of a stopped server if another process has its PID now, as after a restart of a container.

    PostgreSQL would take that process for a running server. Call it only if no process of an earlier server is left.
    """
    postmaster = read_postmaster(data_dir)
    if postmaster and _is_alive(postmaster.pid) and _is_not_server(postmaster.pid, data_dir):
        for name in ("postmaster.pid", f".s.PGSQL.{PORT}.lock"):
            (data_dir / name).unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_not_server(pid: int, data_dir: Path) -> bool:
    """Return whether the process is certainly not this server, whose working directory is its data directory."""
    if not Path("/proc/self/cwd").exists():
        return False
    try:
        return Path(f"/proc/{pid}/cwd").resolve(strict=True) != data_dir.resolve()
    except OSError:
        return True  # the process of another user, or a zombie


def cluster_name(data_dir: Path) -> str:
    """Return the name of the server in the titles of its processes."""
    facts = data_dir.stat()
    return f"corecube-{facts.st_dev:x}-{facts.st_ino:x}"


def end_orphans(data_dir: Path, uid: int) -> int:
    """Kill the processes of this server that outlived its main process; return their number.

    Busy ones may not notice its end for hours, and no server can start as long as they may write to shared memory.
    The next start recovers all committed data. Without /proc none is found.
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
    """Return whether a process is the main process of the server."""
    try:
        return f"cluster_name={cluster}\0" in _command(folder)
    except OSError:
        return False


def _command(folder: Path) -> str:
    return (folder / "cmdline").read_bytes().decode("utf-8", "replace")


def _parent(folder: Path) -> Path:
    # After the name in parentheses, which may contain anything, follow the state and the parent.
    state_and_on = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    return _PROCESSES / state_and_on[1]
