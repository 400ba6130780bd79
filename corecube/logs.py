"""Log files of the processes that CoreCube starts, under `var/log`."""

from pathlib import Path
from typing import IO, Final

_MOST_BYTES: Final = 10 * 2**20


def open_log(path: Path) -> IO[bytes]:
    """Open a log for a new process to append to; one that has grown past 10 MiB is first moved aside to `.1`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _MOST_BYTES:
        path.replace(path.with_name(f"{path.name}.1"))
    return path.open("ab")


def last_lines(path: Path, count: int = 5) -> list[str]:
    """Return the log's last lines."""
    return path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
