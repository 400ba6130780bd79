"""The database connection of whoever asks."""

from django.db import transaction


def let_go() -> None:
    """Give the connection back to the pool, except inside a transaction: who waits for something else keeps none."""
    connection = transaction.get_connection()
    if not connection.in_atomic_block:
        connection.close()
