"""What PostgreSQL's own pid file says of a server, and whether to believe it."""

import os
import signal
import socket
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
