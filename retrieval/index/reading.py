"""Running a search's statements: their time limit, their settings, and what a failure means."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.utils import InterfaceError, OperationalError
from psycopg.errors import QueryCanceled

from corecube.database import Prepared, execution
from corecube.errors import DatabaseUnavailableError
from retrieval.engine.deadline import Deadline
from retrieval.errors import SearchTimeoutError

#: Minimum time limit of a statement without a separate limit.
_MIN_SECONDS: Final = 0.5
_LIMIT: Final = "SELECT set_config('statement_timeout', '{milliseconds}ms', true);\n"
#: What a text that `read` sends begins with.
_SET: Final = "/* for one read */ SELECT"

_Execute = Callable[[str, Any, bool, dict[str, Any]], Any]


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
    local = {**(settings or {})}
    if timeout_seconds is not None:
        local["statement_timeout"] = f"{max(1, int(timeout_seconds * 1000))}ms"
    given = {name: _sent(it) for name, it in parameters.items()} | local
    with translated(), _savepoint(), connection.cursor() as cursor:
        run = execution(cursor, sql) if isinstance(sql, Prepared) else sql
        cursor.execute(f"{_settings(local)};\n{run}", given)
        cursor.nextset()
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _settings(local: Iterable[str]) -> str:
    """Return the statement that sets settings, from parameters of the same names, until the transaction ends."""
    calls = (f"set_config('{name}', %({name})s, true)" for name in local)
    return f"{_SET} {', '.join(calls)}"


def _sent(value: Any) -> Any:  # noqa: ANN401 -- whatever the driver takes
    """Return a parameter as the driver gets it: an array of numbers or ids as its text.

    The driver would look at each element at every place where the statement names the array; a scope stands in many.
    """
    if isinstance(value, list) and value and isinstance(value[0], int | float | UUID):
        return f"{{{','.join(map(str, value))}}}"
    return value


def _savepoint() -> AbstractContextManager[None]:
    """Return a savepoint inside a transaction, which must outlive a failed read.

    Elsewhere nothing: statements that are sent together are one transaction anyway, at a quarter of the round trips.
    """
    return transaction.atomic() if connection.in_atomic_block else nullcontext()


@contextmanager
def bounded(deadline: Deadline) -> Iterator[None]:
    """Break off each of this thread's statements at a deadline, but none before half a second.

    A SELECT of `read` keeps the limit that it was given. Inside a transaction nothing is bounded: the limit would hold
    for what follows. Within, and for leaving it, raises SearchTimeoutError and DatabaseUnavailableError.
    """

    def execute(run: _Execute, sql: str, parameters: object, many: bool, context: dict[str, Any]) -> object:  # noqa: FBT001
        if many or connection.in_atomic_block or sql.startswith(_SET):
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
