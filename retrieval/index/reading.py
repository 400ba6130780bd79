"""Running one SELECT of a search: its time limit, its settings, and what a failure means."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from django.db import connection, transaction
from django.db.utils import OperationalError
from psycopg.errors import QueryCanceled

from corecube.errors import DatabaseUnavailableError
from retrieval.errors import SearchTimeoutError
from retrieval.index import statements


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
    given = {"setting_names": list(local), "setting_values": list(local.values())}
    with _translated(), _savepoint(), connection.cursor() as cursor:
        cursor.execute(f"{statements.SETTINGS};\n{sql}", {**parameters, **given})
        cursor.nextset()
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _savepoint() -> AbstractContextManager[None]:
    """Return a savepoint inside a transaction, which must outlive a failed read.

    Elsewhere nothing: statements that are sent together are one transaction anyway, at a quarter of the round trips.
    """
    return transaction.atomic() if connection.in_atomic_block else nullcontext()


@contextmanager
def _translated() -> Iterator[None]:
    """Raise SearchTimeoutError for a statement that ran too long, DatabaseUnavailableError for a lost database."""
    try:
        yield
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise SearchTimeoutError from error
        raise DatabaseUnavailableError from error
