"""Statements with a timeout, because a stopped server keeps connections open and never responds."""

import select
from time import monotonic
from typing import Any, Final

import psycopg

#: Longer than an empty statement takes on a busy server.
ANSWER_SECONDS: Final = 2.0


def answers(connection: "psycopg.Connection[Any]") -> bool:
    """Return whether the server of an idle connection responds in time; otherwise the connection is closed."""
    try:
        ask(connection, "")
    except psycopg.Error:
        return False
    return True


def ask(connection: "psycopg.Connection[Any]", statement: str) -> str:
    """Run a statement on an idle connection outside a transaction; return the first value of its result, or empty.

    Raises psycopg.OperationalError and closes the connection if the server does not respond in time.
    """
    try:
        return _exchange(connection, statement.encode(), monotonic() + ANSWER_SECONDS)
    except psycopg.Error:
        connection.close()
        raise


def _exchange(connection: "psycopg.Connection[Any]", statement: bytes, deadline: float) -> str:
    value = b""
    server = connection.pgconn
    server.send_query(statement)
    watched = select.poll()
    watched.register(server.socket, select.POLLIN)
    while True:
        while server.is_busy():
            if not watched.poll(max(0.0, deadline - monotonic()) * 1000):
                message = (
                    "The server accepts connections but does not respond to statements. A pooler without free "
                    "connections does so: PgBouncer's default_pool_size must be sufficient for all processes."
                )
                raise psycopg.OperationalError(message)
            server.consume_input()
        result = server.get_result()
        if result is None:
            return value.decode()
        if result.ntuples:
            value = result.get_value(0, 0) or b""
