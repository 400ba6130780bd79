"""Lock files. The kernel drops a lock with its last holder, killed or not, so none can go stale."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def open_lock(path: Path) -> int:
    """Open a lock file without locking it, made with its folder if missing; return its file descriptor."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_RDONLY | os.O_CREAT, 0o600)


def try_exclusive(lock: int) -> bool:
    """Lock an open file for its holder alone, unless anybody else has it now; return whether that worked."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def share(lock: int) -> None:
    """Lock an open file shared, waiting while somebody has it exclusively."""
    fcntl.flock(lock, fcntl.LOCK_SH)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock alone, waiting for it."""
    lock = open_lock(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        # A process that was forked meanwhile has the file open too, and closing it here would leave it locked.
        fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)
