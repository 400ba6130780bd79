"""The lock that only one start of an installation has."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from corecube.errors import UnavailableError
from corecube.process import open_lock, try_exclusive


@contextmanager
def only_start() -> Iterator[int]:
    """Prevent a second start on the same data; yield the descriptor of the lock. Raises UnavailableError."""
    lock = open_lock(settings.CORECUBE_VAR_DIR / "start.lock")
    try:
        if not try_exclusive(lock):
            folder = settings.CORECUBE_VAR_DIR
            raise UnavailableError(f"CoreCube is already running on {folder}. Set CORECUBE_VAR_DIR to another folder.")
        yield lock
    finally:
        os.close(lock)
