"""Running statements: the time limit and settings of a search's, what a failure means, and parameters as texts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import numpy as np
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.utils import InterfaceError, InternalError, OperationalError, ProgrammingError
from psycopg.errors import QueryCanceled

from corecube.database import Prepared, execution
from corecube.errors import DatabaseUnavailableError
from corecube.replicas import replicas
from retrieval.engine.deadline import Deadline
from retrieval.engine.types import Ranking, Vector
from retrieval.errors import SearchTimeoutError
from retrieval.index.citus import for_shards, is_distributed, set_local

_MIN_SECONDS: Final = 0.5  #: Minimum time limit of a statement without a separate limit.
_LIMIT: Final = "SELECT set_config('statement_timeout', '{milliseconds}ms', true);\n"
_LOST_WORKER: Final = "failure on connection marked as essential"  #: What Citus says of a worker that just ended.
_READ: Final = "/* for one read */"  #: What a text that `read` sends begins with.

_Execute = Callable[[str, Any, bool, dict[str, Any]], Any]
_DIGITS: Final = "%.5g"  #: Significant digits that tell one half float from every other.
_KEPT: Final = 64  #: A search sends the vector of its question three times.


def read(
    sql: str,
    parameters: Mapping[str, Any],
    *,
    timeout_seconds: float | None = None,
    settings: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Run one SELECT under settings that end with it and return its rows by column name.

    `timeout_seconds` None sets no time limit. Raises SearchTimeoutError past the limit, DatabaseUnavailableError.
    """
    names, found = fetch(sql, parameters, timeout_seconds=timeout_seconds, settings=settings)
    return [dict(zip(names, row, strict=True)) for row in found]


def fetch(
    sql: str,
    parameters: Mapping[str, Any],
    *,
    timeout_seconds: float | None = None,
    settings: Mapping[str, str] | None = None,
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Do the same and return the names of the columns, and the rows as they come.

    What is limited to a scope is read from a replica, where there is one that may be read.
    """
    local = {**(settings or {})}
    if timeout_seconds is not None:
        local["statement_timeout"] = f"{max(1, int(timeout_seconds * 1000))}ms"
    given = {name: _sent(it) for name, it in parameters.items()}
    if "scope" in parameters and (replica := replicas().usable()):
        try:
            found = _fetch(connections[replica.alias], sql, given, local, has_settings=bool(settings))
        except (DatabaseUnavailableError, ProgrammingError) as error:
            replicas().failed(replica, error)
        else:
            replicas().succeeded(replica)
            return found
    return _fetch(connections["default"], sql, given, local, has_settings=bool(settings))


def _fetch(
    connection: BaseDatabaseWrapper, sql: str, given: Mapping[str, Any], local: Mapping[str, str], *, has_settings: bool
) -> tuple[list[str], list[tuple[Any, ...]]]:
    # A transaction must outlive a failed read. Elsewhere no savepoint is needed: statements that are sent together are
    # one transaction anyway, at a quarter of the round trips.
    savepoint = transaction.atomic(connection.alias) if connection.in_atomic_block else nullcontext()
    with translated(), savepoint, connection.cursor() as cursor:
        is_on_shards = is_distributed(cursor)
        if is_on_shards and has_settings:
            return _fetch_from_shards(cursor, for_shards(sql), given, local)
        # The coordinator breaks off what its shards do when the time is up, without a setting of theirs.
        run = for_shards(sql) if is_on_shards else execution(cursor, sql) if isinstance(sql, Prepared) else sql
        calls = (f"set_config('{name}', %({name})s, true)" for name in local)
        cursor.execute(f"{_READ} SELECT {', '.join(calls)};\n{run}", {**given, **local})
        cursor.nextset()
        return _result(cursor)


def _fetch_from_shards(
    cursor: Any,  # noqa: ANN401 -- Django's cursor wrapper has no public type
    sql: str,
    parameters: Mapping[str, Any],
    settings: Mapping[str, str],
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Do the same where the settings must reach shards: in a transaction, sent at once."""
    with cursor.db.wrap_database_errors, cursor.connection.pipeline(), cursor.connection.transaction():
        set_local(cursor, settings)
        cursor.execute(f"{_READ} {sql}", parameters)
        return _result(cursor)


def _result(cursor: Any) -> tuple[list[str], list[tuple[Any, ...]]]:  # noqa: ANN401 -- as above
    rows = cursor.fetchall()
    return [column.name for column in cursor.description or ()], rows


def chunk_keys(hits: Ranking) -> dict[str, Any]:
    """Return the parameters `documents` and `ordinals` of a statement about the chunks of hits."""
    return {"documents": [it.chunk_id.document_id for it in hits], "ordinals": [it.chunk_id.ordinal for it in hits]}


def _sent(value: Any) -> Any:  # noqa: ANN401 -- whatever the driver takes
    """Return a parameter as the driver gets it: an array of numbers or ids as its text.

    The driver would look at each element at every place where the statement names the array; a scope occurs in many.
    """
    if isinstance(value, list) and value and isinstance(value[0], int | float | UUID):
        return f"{{{','.join(map(str, value))}}}"
    return value


def rows(sql: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
    """Return all rows of a statement of workers and commands, which has no time limit."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())


def changed(sql: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> int:
    """Run a statement that writes and return the number of rows that it changed."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return int(cursor.rowcount)


@contextmanager
def advisory_lock(kind: int, key: int) -> Iterator[bool]:
    """Yield whether this process got an advisory lock, and give it up at the end; it also ends with the process."""
    is_ours = rows("SELECT pg_try_advisory_lock(%s, %s)", [kind, key]) == [(True,)]
    try:
        yield is_ours
    finally:
        if is_ours:
            rows("SELECT pg_advisory_unlock(%s, %s)", [kind, key])


@contextmanager
def bounded(deadline: Deadline) -> Iterator[None]:
    """Break off each of this thread's statements at a deadline, but none before half a second.

    A SELECT of `read` keeps the limit that it was given. Inside a transaction nothing is bounded: the limit would hold
    for what follows. Within, and for leaving it, raises SearchTimeoutError and DatabaseUnavailableError.
    """

    def execute(run: _Execute, sql: str, parameters: object, many: bool, context: dict[str, Any]) -> object:  # noqa: FBT001
        if many or connection.in_atomic_block or sql.startswith(_READ):
            return run(sql, parameters, many, context)
        milliseconds = int(max(_MIN_SECONDS, deadline.remaining_seconds) * 1000)
        with translated():
            run(_LIMIT.format(milliseconds=milliseconds) + sql, parameters, many, context)
            return context["cursor"].nextset()

    with translated(), connection.execute_wrapper(execute):
        yield


@contextmanager
def translated() -> Iterator[None]:
    """Raise SearchTimeoutError for a statement that ran too long, DatabaseUnavailableError for a lost database."""
    try:
        yield
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise SearchTimeoutError from error
        raise DatabaseUnavailableError from error
    except InterfaceError as error:
        raise DatabaseUnavailableError from error
    except InternalError as error:
        if _LOST_WORKER not in str(error):
            raise
        raise DatabaseUnavailableError from error


def vector_text(vector: Vector) -> str:
    """Return a vector as the text of a halfvec: each component as the nearest half float, in few digits."""
    return _text(vector.astype(np.float16).tobytes())


@lru_cache(maxsize=_KEPT)
def _text(halves: bytes) -> str:
    return f"[{','.join(_DIGITS % it for it in np.frombuffer(halves, np.float16).tolist())}]"


class CompiledQuery:
    """The first row of a queryset, as written when this was made."""

    def __init__(self, rows: QuerySet[Any, Any]) -> None:
        sql, parameters = rows[:1].query.sql_with_params()
        self._parameters = {f"parameter_{place}": it for place, it in enumerate(parameters)}
        self._sql = Prepared(sql % tuple(f"%({name})s" for name in self._parameters))

    def first(self) -> tuple[Any, ...] | None:
        """Return the first row that there is now, JSON as its text; None without one."""
        with connection.cursor() as cursor:
            cursor.execute(execution(cursor, self._sql), self._parameters)
            row: tuple[Any, ...] | None = cursor.fetchone()
        return row
