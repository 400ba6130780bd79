"""Database helpers: the pool, releasing connections, transactions of changes, unstorable values, prepared SQL."""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from asgiref.sync import sync_to_async
from django.core.exceptions import ObjectDoesNotExist
from django.db import DataError, IntegrityError, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.db.models import Model, QuerySet
from django.dispatch import receiver
from psycopg import errors
from psycopg_pool import ConnectionPool

from corecube.errors import ConflictError, NotFoundError

_PARAMETER: Final = re.compile(r"%\((\w+)\)s")
#: The EXECUTE statements by prepared statement, for each connection.
_EXECUTIONS: Final = WeakKeyDictionary[Any, dict[str, str]]()
_Pool = ConnectionPool[Any]
_Row = TypeVar("_Row", bound=Model)
_P = ParamSpec("_P")
_R = TypeVar("_R")

_RESERVED: Final = 16  #: Connections reserved for other processes and administrators.
_MINIMUM: Final = 4
_USABLE_SQL: Final = """
SELECT current_setting('max_connections')::int
       - current_setting('superuser_reserved_connections')::int
       - coalesce(current_setting('reserved_connections', true), '0')::int
"""

_fitted: Final[WeakKeyDictionary[_Pool, int]] = WeakKeyDictionary()


def release_connection() -> None:
    """Return the thread's connections to the pools, except inside a transaction, before waiting for something else."""
    for opened in connections.all(initialized_only=True):
        if not opened.in_atomic_block:
            opened.close()


def in_thread(work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> Awaitable[_R]:
    """Do blocking work of a stream in its request's thread, and release the thread's database connection."""

    def work_and_release() -> _R:
        try:
            return work(*args, **kwargs)
        finally:
            release_connection()

    return sync_to_async(work_and_release)()


def first_or(error: Exception, rows: QuerySet[_Row]) -> _Row:
    """Return the first row; raise the error without one."""
    row = rows.first()
    if row is None:
        raise error
    return row


def each_taken(waiting: QuerySet[_Row], take: Callable[[_Row], None]) -> Iterator[_Row]:
    """Yield the first of the waiting rows that no other worker has, until there is none.

    `take` stores that a row no longer waits, in the transaction that locks it.
    """
    while True:
        with transaction.atomic():
            row = waiting.select_for_update(skip_locked=True, of=("self",)).first()
            if row is None:
                return
            take(row)
        yield row


def close_pools() -> None:
    """Close all connections of this thread, and the pools of this process."""
    for opened in connections.all(initialized_only=True):
        opened.close()
        opened.close_pool()  # type: ignore[attr-defined]  # every backend here is PostgreSQL's


@contextmanager
def atomic_change(conflict: str = "") -> Iterator[None]:
    """Run a block, or as a decorator a function, in a transaction that reports concurrent changes.

    Raises ConflictError with the message `conflict` if a unique constraint is violated, ConflictError if a referenced
    row was deleted, and NotFoundError if the row itself was deleted.
    """
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        if isinstance(error.__cause__, errors.UniqueViolation):
            raise ConflictError(conflict) from error
        if isinstance(error.__cause__, errors.ForeignKeyViolation):
            raise ConflictError("A related item was just deleted.") from error
        raise
    except ObjectDoesNotExist as error:
        raise NotFoundError("This item was just deleted.") from error


def is_unstorable(error: BaseException | None) -> bool:
    """Return whether the cause of an error is a value that the database or its driver cannot store."""
    while error is not None:
        if isinstance(error, DataError):
            return True
        if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
            return True
        error = error.__cause__
    return False


class Prepared(str):  # noqa: SLOT000 -- derived texts are cached on the instance
    """A statement with named parameters that each connection prepares once, with one plan for all values.

    A string derived from it, such as by a filter, is not prepared.
    """

    @cached_property
    def numbered(self) -> str:
        """The statement with numbered parameters, for PREPARE."""
        numbers = {name: f"${number}" for number, name in enumerate(self._names, start=1)}
        return _PARAMETER.sub(lambda found: numbers[found[1]], self).replace("%%", "%")

    @cached_property
    def arguments(self) -> str:
        """The parameters in the order of their numbers, for EXECUTE; empty without parameters."""
        return f"({', '.join(f'%({name})s' for name in self._names)})" if self._names else ""

    @cached_property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(_PARAMETER.findall(self)))


def execution(cursor: Any, sql: Prepared) -> str:  # noqa: ANN401 -- Django's cursor wrapper has no public type
    """Return the EXECUTE statement for a cursor; prepares the statement on its connection if needed."""
    executions = _EXECUTIONS.setdefault(cursor.connection, {})
    if sql not in executions:
        name = f"corecube_{len(executions)}"
        cursor.execute(f"PREPARE {name} AS {sql.numbered}")
        executions[sql] = f"EXECUTE {name} {sql.arguments}"
    return executions[sql]


def columns_of(model: type[Model]) -> str:
    """Return all columns of a model's table, for a SELECT."""
    quote, meta = connection.ops.quote_name, model._meta  # noqa: SLF001 -- Django's documented way to the fields
    return ", ".join(f"{quote(meta.db_table)}.{quote(field.column)}" for field in meta.concrete_fields)


def instance_of(model: type[_Row], row: Sequence[Any]) -> tuple[_Row, Sequence[Any]]:
    """Return the instance of a row that begins with all of a model's columns, and the rest of the row."""
    fields = model._meta.concrete_fields  # noqa: SLF001 -- Django's documented way to the fields
    values = [
        field.from_db_value(value, None, connection) if hasattr(field, "from_db_value") else value
        for field, value in zip(fields, row, strict=False)
    ]
    return model.from_db(connection.alias, [field.attname for field in fields], values), row[len(fields) :]


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
