"""Statements with a limit of time: a server that is stopped keeps its connections open and never answers."""

import select
from time import monotonic
from typing import Any, Final

import psycopg

#: Longer than a busy server takes for a statement that does nothing; a request waits that long for one that hangs.
ANSWER_SECONDS: Final = 2.0


def answers(connection: "psycopg.Connection[Any]") -> bool:
    """Return whether an idle connection's server answers in time; if not, the connection is closed."""
    try:
        ask(connection, "")
    except psycopg.Error:
        return False
    return True


def ask(connection: "psycopg.Connection[Any]", statement: str) -> str:
    """Run a statement on an idle connection outside a transaction; return the first value of its result, or nothing.

    Raises psycopg.OperationalError, with the connection closed, when the server does not answer in time.
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
                    "The server takes connections but answers no statement. A pooler does so when it has no "
                    "connection left: PgBouncer's default_pool_size has to suffice for all processes."
                )
                raise psycopg.OperationalError(message)
            server.consume_input()
        result = server.get_result()
        if result is None:
            return value.decode()
        if result.ntuples:
            value = result.get_value(0, 0) or b""
