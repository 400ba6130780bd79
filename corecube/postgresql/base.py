"""Django's PostgreSQL backend with a pool that reconnects at once, compatible with poolers.

psycopg's pool retries with increasing delays of up to minutes. This one retries with every request for a connection.
Each connection is tested before it is used: by a statement, unless it was used a moment ago and the server has sent
nothing since. Statements that test a connection have a timeout: a stopped server keeps connections open and never
responds.
"""

import select
from time import monotonic
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

import psycopg
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool, PoolTimeout

ANSWER_SECONDS: Final = 2.0  #: Longer than an empty statement takes on a busy server.
TRUSTED_SECONDS: Final = 0.5  #: Time after its last use in which a connection is not tested by a statement.
Session = psycopg.Connection[Any]


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


class ReconnectingPool(ConnectionPool[Session]):
    """Returns working connections, and fails at once with the error of the server if none can be made."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 -- psycopg's options
        super().__init__(**options, reconnect_timeout=0.0)
        self._failure = ""
        self._used_at = WeakKeyDictionary[Session, float]()

    def getconn(self, timeout: float | None = None) -> Session:
        """Return a working connection; raise OperationalError if none can be made, PoolTimeout if none is free."""
        seconds = self.timeout if timeout is None else timeout
        deadline = monotonic() + seconds
        while (left := deadline - monotonic()) > 0:
            connection = super().getconn(left)
            if self._is_trusted(connection) or answers(connection):
                return connection
            # It is closed, and the pool replaces it. Others may be as old, so try the next one at once.
            self.putconn(connection)
        raise PoolTimeout(f"No working database connection was free within {seconds:.0f} s.")

    def putconn(self, conn: Session) -> None:
        """Take back a connection that `getconn` returned."""
        self._used_at[conn] = monotonic()
        super().putconn(conn)

    def _is_trusted(self, connection: Session) -> bool:
        """Return whether a connection was used a moment ago and nothing came since: a server says why it closes one."""
        if monotonic() - self._used_at.get(connection, -TRUSTED_SECONDS) >= TRUSTED_SECONDS or connection.closed:
            return False
        watched = select.poll()
        watched.register(connection.pgconn.socket, select.POLLIN)
        return not watched.poll(0)

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


class DatabaseWrapper(base.DatabaseWrapper):
    """Connects to the configured server."""

    pool_class: ClassVar[type[ReconnectingPool]] = ReconnectingPool
    #: JIT compilation takes longer than a search. A statement, because PgBouncer rejects startup options.
    session_statement: ClassVar[str] = "SET jit = off"
    _connection_pools: ClassVar[dict[str, ReconnectingPool]] = {}

    @property
    def pool(self) -> ReconnectingPool | None:
        """The pool of this process, created but not opened; None if not configured."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if self.alias == NO_DB_ALIAS or not options:
            return None
        if self.alias not in self._connection_pools:
            parameters = {**self.get_connection_params(), "autocommit": True}
            made = self.pool_class(
                kwargs=lambda: {**parameters, **self.address()},
                open=False,
                configure=self._configure_connection,
                **options,
            )
            # Two threads may create a pool at once; the second one is discarded unopened.
            self._connection_pools.setdefault(self.alias, made)
        return self._connection_pools[self.alias]

    def address(self) -> dict[str, str]:
        """Return the parameters that may change between connections."""
        return {}

    def _configure_connection(self, connection: Session) -> bool:
        """Configure a new connection; return whether to commit."""
        given = self.settings_dict["OPTIONS"].get("options", "")
        if self.session_statement and "jit" not in given:
            ask(connection, self.session_statement)
        is_changed = super()._configure_connection(connection)  # type: ignore[misc]  # the stubs lack it
        return bool(is_changed or self.session_statement)
