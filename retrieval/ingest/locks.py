"""Locks of syncs: an advisory lock for each connection, and row locks in a fixed order.

Several processes change the rows of one sync. Each locks documents first, then items by their keys, and the sync last,
which rules out deadlocks.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connection as database
from django.db.models import QuerySet

from corecube.models import Connection
from retrieval.errors import SyncRunningError
from retrieval.models import SyncItem

#: First key of the advisory locks that keep two processes from listing or ending the syncs of one connection at once.
_LOCK_CLASS: Final = 7_301


@contextmanager
def sync_lock(connection: Connection) -> Iterator[None]:
    """Hold the connection's advisory lock, which ends with the process. Raises SyncRunningError if it is held."""
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
    """Return whether a process holds the connection's lock, without taking it."""
    with database.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
            " AND classid = %s AND objid = %s)",
            [_LOCK_CLASS, connection_id],
        )
        return bool(cursor.fetchone() == (True,))


def lock_items(items: QuerySet[SyncItem]) -> QuerySet[SyncItem]:
    """Lock items in the order of their keys until the caller's transaction ends, and return them."""
    keys = items.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True)
    return SyncItem.objects.filter(pk__in=list(keys))
