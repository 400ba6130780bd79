"""Django's PostgreSQL backend with a pool that reconnects at once, compatible with poolers."""

from typing import ClassVar

from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base

from corecube.postgresql.answering import ask
from corecube.postgresql.reconnecting import ReconnectingPool, Session


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
