"""A connection pool that reconnects as soon as the server is available.

psycopg's pool retries with increasing delays of up to minutes. This one retries with every request for a connection.
"""

from time import monotonic
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from corecube.postgresql.answering import answers

Session = psycopg.Connection[Any]


class ReconnectingPool(ConnectionPool[Session]):
    """Returns working connections, and fails at once with the error of the server if none can be made."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 -- psycopg's options
        super().__init__(**options, reconnect_timeout=0.0)
        self._failure = ""

    def getconn(self, timeout: float | None = None) -> Session:
        """Return a working connection.

        Raises psycopg.OperationalError if none can be made, PoolTimeout if none was free in time.
        """
        seconds = self.timeout if timeout is None else timeout
        deadline = monotonic() + seconds
        while (left := deadline - monotonic()) > 0:
            connection = super().getconn(left)
            if answers(connection):
                return connection
            # It is closed, and the pool replaces it. Others may be as old, so try the next one at once.
            self.putconn(connection)
        raise PoolTimeout(f"No working database connection was free within {seconds:.0f} s.")

    def reconnect_failed(self) -> None:
        """Fail all waiting clients, unless a connection in use may still be returned."""
        with self._lock:
            waiting = [] if self._nconns else list(self._waiting)
            if waiting:
                self._waiting.clear()
        for client in waiting:
            client.fail(psycopg.OperationalError(self._failure))

    def _connect(self, timeout: float | None = None) -> Session:
        """Return a new connection; record the error otherwise."""
        try:
            return super()._connect(timeout)
        except Exception as error:
            self._failure = str(error)
            raise
