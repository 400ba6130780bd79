"""Watches the embedded server while CoreCube runs, and restarts it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from django.db import Error, connection

logger = logging.getLogger(__name__)

_INTERVAL_SECONDS: Final = 0.5
#: Maximum wait for a running check at the end of the block.
_JOIN_SECONDS: Final = 5.0


@contextmanager
def watched_database() -> Iterator[None]:
    """Check the embedded database twice a second during the block, so that no request has to wait for a restart.

    A check connects, which restarts a stopped server.
    """
    if connection.settings_dict["ENGINE"] != "corecube.embedded":
        yield
        return
    is_over = Event()
    watch = Thread(target=_watch, args=(is_over,), name="database-watch", daemon=True)
    watch.start()
    try:
        yield
    finally:
        is_over.set()
        watch.join(_JOIN_SECONDS)


def _watch(is_over: Event) -> None:
    was_available = True
    while not is_over.wait(_INTERVAL_SECONDS):
        is_available = _is_available(was_available=was_available)
        if is_available and not was_available:
            logger.warning("database.available_again")
        was_available = is_available


def _is_available(*, was_available: bool) -> bool:
    try:
        connection.ensure_connection()
    except Error as error:
        if was_available:
            logger.warning("database.unavailable error=%s", error)
        return False
    finally:
        connection.close()
    return True
