"""The pool of database connections: connections in use, and a limit that fits the server."""

from typing import Any, Final
from weakref import WeakKeyDictionary

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from psycopg_pool import ConnectionPool

_Pool = ConnectionPool[Any]

#: Connections reserved for other processes and administrators.
_RESERVED: Final = 16
_MINIMUM: Final = 4
_USABLE_SQL: Final = """
SELECT current_setting('max_connections')::int
       - current_setting('superuser_reserved_connections')::int
       - coalesce(current_setting('reserved_connections', true), '0')::int
"""

#: The fitted size of each pool.
_fitted: Final[WeakKeyDictionary[_Pool, int]] = WeakKeyDictionary()


def process_limit(usable: int) -> int:
    """Return the limit of connections for one process of a server with this many usable connections; at least 4."""
    return max(_MINIMUM, usable - _RESERVED)


@receiver(connection_created)
def fit(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Limit the pool to the connections of the server, on the first connection."""
    pool = _pool_of(connection)
    if pool is None or pool in _fitted:
        return
    _fitted[pool] = pool.max_size
    with connection.cursor() as cursor:
        cursor.execute(_USABLE_SQL)
        limit = process_limit(cursor.fetchone()[0])
    if limit < pool.max_size:
        pool.resize(min(pool.min_size, limit), limit)
        _fitted[pool] = limit


def max_connections() -> int | None:
    """Return the size limit of the pool; None without a pool, or before its first use."""
    pool = _pool_of(connection)
    return _fitted.get(pool) if pool is not None else None


def connections_in_use() -> int:
    """Return the number of connections in use, without that of the caller."""
    pool = _pool_of(connection)
    if pool is None:
        return 0
    stats = pool.get_stats()
    is_connected = connection.connection is not None
    return max(0, stats["pool_size"] - stats["pool_available"] - int(is_connected))


def _pool_of(connection: Any) -> _Pool | None:  # noqa: ANN401 -- the default connection is a proxy
    found: _Pool | None = getattr(connection, "pool", None)
    return found
