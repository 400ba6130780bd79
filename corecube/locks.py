"""Lock files. The kernel releases a lock when its last holder ends, so no lock becomes stale."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def open_lock(path: Path) -> int:
    """Open a lock file without locking it, created if missing; return its file descriptor."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_RDONLY | os.O_CREAT, 0o600)


def try_exclusive(lock: int) -> bool:
    """Try to lock an open file exclusively; return whether that succeeded."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def share(lock: int) -> None:
    """Lock an open file as shared, after waiting for an exclusive lock."""
    fcntl.flock(lock, fcntl.LOCK_SH)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold an exclusive lock, after waiting for it."""
    lock = open_lock(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        # A process forked in the meantime also has the file open, so closing would not unlock it.
        fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)
