"""Looking after the embedded server while CoreCube runs: whoever finds it gone starts it again."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from django.db import Error, connection

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.5
#: How long the end of the block waits for a look that is not over.
_JOIN_SECONDS: Final = 5.0


@contextmanager
def watched_database() -> Iterator[None]:
    """Look twice a second, while the block runs, whether the database answers, so that nobody has to ask for it first.

    Connecting starts a server that is gone. A server of somebody else's is left alone.
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
    was_there = True
    while not is_over.wait(_LOOK_SECONDS):
        is_there = _answers(was_there=was_there)
        if is_there and not was_there:
            logger.warning("database.available_again")
        was_there = is_there


def _answers(*, was_there: bool) -> bool:
    """Return whether a connection to the database can be had, and log why not, once."""
    try:
        connection.ensure_connection()
    except Error as error:
        if was_there:
            logger.warning("database.unavailable error=%s", error)
        return False
    finally:
        connection.close()
    return True
