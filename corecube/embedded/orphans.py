"""Processes of an embedded server whose main process was killed.

Most of them notice and end. One that is at work does not look for it, maybe for hours, and as long as it lives no
server can be started on the data: it may still write to memory that it shared.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

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
