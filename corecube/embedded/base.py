"""Django's PostgreSQL backend, pointed at the embedded server, which is started on first use and after a crash."""

from typing import Any, ClassVar

import psycopg
from django.conf import settings
from django.db.utils import OperationalError

from corecube.embedded.client import DatabaseClient
from corecube.embedded.server import embedded_server, ensure_database, revived_server
from corecube.errors import DatabaseUnavailableError
from corecube.postgresql import base
from corecube.postgresql.reconnecting import ReconnectingPool, Session


class RevivingPool(ReconnectingPool):
    """Starts the embedded server again when it is gone."""

    def _connect(self, timeout: float | None = None) -> Session:
        """Return a new connection; raise psycopg.OperationalError when the server cannot be started."""
        try:
            return super()._connect(timeout)
        except psycopg.OperationalError:
            self._revive()
        return super()._connect(timeout)

    def _revive(self) -> None:
        try:
            revived_server(settings.CORECUBE_POSTGRES_DIR)
        except DatabaseUnavailableError as error:
            self._failure = str(error)
            raise psycopg.OperationalError(str(error)) from error


class DatabaseWrapper(base.DatabaseWrapper):
    """Connects to the embedded server and creates the database when it is not there yet."""

    client_class = DatabaseClient
    pool_class: ClassVar[type[ReconnectingPool]] = RevivingPool
    #: The server's own configuration says it.
    session_statement: ClassVar[str] = ""

    def get_connection_params(self) -> dict[str, Any]:
        """Return psycopg's parameters, with the socket of the running server; raise OperationalError without one."""
        try:
            server = embedded_server(settings.CORECUBE_POSTGRES_DIR)
        except DatabaseUnavailableError as error:
            # A database error like any other to whoever connects: what waits for the database tries again.
            raise OperationalError(str(error)) from error
        # Without a name Django means the maintenance database, to create or drop others from.
        if name := self.settings_dict["NAME"]:
            ensure_database(server, name)
        self.settings_dict.update(HOST=server.socket_dir, PORT=server.port, USER=server.user)
        return super().get_connection_params()

    def address(self) -> dict[str, str]:
        """Return where the server listens now: its socket may lie elsewhere since it was started again."""
        return {"host": embedded_server(settings.CORECUBE_POSTGRES_DIR).socket_dir}
