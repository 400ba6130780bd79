"""This process's pool of database connections: how many are at work, and how many the server has room for."""

from typing import Any, Final
from weakref import WeakKeyDictionary

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from psycopg_pool import ConnectionPool

_Pool = ConnectionPool[Any]

#: Connections that a pool leaves to other processes and to whoever looks after the server.
_FOR_OTHERS: Final = 16
#: A process cannot do with fewer.
_MINIMUM: Final = 4
_ROOM_SQL: Final = """
SELECT current_setting('max_connections')::int
       - current_setting('superuser_reserved_connections')::int
       - coalesce(current_setting('reserved_connections', true), '0')::int
"""

#: What each pool that has been looked at was made to hold.
_fitted: Final[WeakKeyDictionary[_Pool, int]] = WeakKeyDictionary()


def room_for_one(usable: int) -> int:
    """Return the most connections that one process may hold of a server's, after what others need; at least 4."""
    return max(_MINIMUM, usable - _FOR_OTHERS)


@receiver(connection_created)
def fit(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Make a process's pool no larger than its server has room for, on the pool's first connection."""
    pool = _pool_of(connection)
    if pool is None or pool in _fitted:
        return
    _fitted[pool] = pool.max_size
    with connection.cursor() as cursor:
        cursor.execute(_ROOM_SQL)
        room = room_for_one(cursor.fetchone()[0])
    if room < pool.max_size:
        pool.resize(min(pool.min_size, room), room)
        _fitted[pool] = room


def max_connections() -> int | None:
    """Return how many connections the pool may hold; None where there is none, or it was not used yet."""
    pool = _pool_of(connection)
    return _fitted.get(pool) if pool is not None else None


def connections_at_work() -> int:
    """Return how many connections are taken out of the pool, without the caller's own."""
    pool = _pool_of(connection)
    if pool is None:
        return 0
    stats = pool.get_stats()
    own = connection.connection is not None
    return max(0, stats["pool_size"] - stats["pool_available"] - int(own))


def _pool_of(connection: Any) -> _Pool | None:  # noqa: ANN401 -- the default connection is a proxy
    found: _Pool | None = getattr(connection, "pool", None)
    return found
