"""A pool whose connections are there again as soon as the server is.

psycopg's own pool tries again after a second, then after two, and so on up to minutes, whoever waits for it. This one
tries whenever somebody asks.
"""

from time import monotonic
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from corecube.postgresql.answering import answers

Session = psycopg.Connection[Any]


class ReconnectingPool(ConnectionPool[Session]):
    """Gives out connections that answer, and fails at once, with the server's own error, while none can be made."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 -- psycopg's options
        super().__init__(**options, reconnect_timeout=0.0)
        self._failure = ""

    def getconn(self, timeout: float | None = None) -> Session:
        """Return a connection that answers.

        Raises psycopg.OperationalError as soon as none can be made, PoolTimeout when none was free in time.
        """
        seconds = self.timeout if timeout is None else timeout
        deadline = monotonic() + seconds
        while (left := deadline - monotonic()) > 0:
            connection = super().getconn(left)
            if answers(connection):
                return connection
            # It is closed now and the pool replaces it. The next one is tried without a pause: all may be as old.
            self.putconn(connection)
        message = f"None of the pool's connections was free and answered within {seconds:.0f} s."
        raise PoolTimeout(message)

    def reconnect_failed(self) -> None:
        """Fail everybody who waits, unless a connection that is at work may still come back to them."""
        with self._lock:
            waiting = [] if self._nconns else list(self._waiting)
            if waiting:
                self._waiting.clear()
        for client in waiting:
            client.fail(psycopg.OperationalError(self._failure))

    def _connect(self, timeout: float | None = None) -> Session:
        """Return a new connection; remember why there is none."""
        try:
            return super()._connect(timeout)
        except Exception as error:
            self._failure = str(error)
            raise
