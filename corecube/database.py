"""Releasing the calling thread's database connection, and telling values that PostgreSQL cannot store."""

from django.db import DataError, transaction


def release_connection() -> None:
    """Give the connection back to the pool, except inside a transaction: who waits for something else keeps none."""
    connection = transaction.get_connection()
    if not connection.in_atomic_block:
        connection.close()


def is_unstorable(error: BaseException | None) -> bool:
    """Return whether the database, or the way to it, could not take a value, also where another error wraps that."""
    while error is not None:
        if isinstance(error, DataError):
            return True
        if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
            return True
        error = error.__cause__
    return False
