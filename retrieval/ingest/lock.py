"""The advisory lock of a connection: one process at a time lists a sync of it, settles it, or ends it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connection as database

from corecube.models import Connection
from retrieval.errors import SyncRunningError

#: First key of the advisory locks that keep two processes from listing or ending the syncs of one connection at once.
_LOCK_CLASS: Final = 7_301


@contextmanager
def only_sync_of(connection: Connection) -> Iterator[None]:
    """Hold the connection's advisory lock, which the database gives up by itself when the process dies.

    Raises SyncRunningError when somebody else holds it.
    """
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_LOCK_CLASS, connection.pk])
        if cursor.fetchone() != (True,):
            raise SyncRunningError
    try:
        yield
    finally:
        with database.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_LOCK_CLASS, connection.pk])


def is_locked(connection_id: int) -> bool:
    """Return whether some process holds the connection's lock, without taking it."""
    with database.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
            " AND classid = %s AND objid = %s)",
            [_LOCK_CLASS, connection_id],
        )
        return bool(cursor.fetchone() == (True,))
