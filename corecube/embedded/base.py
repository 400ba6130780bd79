"""Django's PostgreSQL backend on the embedded server, which it starts on first use and after a crash."""

from collections.abc import Iterable
from typing import Any, ClassVar

import psycopg
from django.conf import settings
from django.db.backends.postgresql import client
from django.db.utils import OperationalError

from corecube.embedded import install
from corecube.embedded.server import embedded_server, ensure_database, restarted_server
from corecube.errors import DatabaseUnavailableError
from corecube.postgresql import base
from corecube.postgresql.base import ReconnectingPool, Session


class DatabaseClient(client.DatabaseClient):
    """`manage.py dbshell` with the psql of the embedded server."""

    def runshell(self, parameters: Iterable[str]) -> None:
        """Run psql on the running server."""
        # Starts the server and stores its address in the settings.
        self.connection.get_connection_params()
        super().runshell(parameters)

    @classmethod
    def settings_to_cmd_args_env(
        cls, settings_dict: dict[str, Any], parameters: Iterable[str]
    ) -> tuple[list[str], dict[str, str] | None]:
        """Return the command and its environment; raise DatabaseUnavailableError if psql is missing."""
        (_, *arguments), environment = super().settings_to_cmd_args_env(settings_dict, parameters)
        return [str(install.program("psql")), *arguments], environment


class RestartingPool(ReconnectingPool):
    """Restarts the embedded server when it has stopped."""

    def _connect(self, timeout: float | None = None) -> Session:
        """Return a new connection; raise psycopg.OperationalError if the server cannot be started."""
        try:
            return super()._connect(timeout)
        except psycopg.OperationalError:
            try:
                restarted_server(settings.CORECUBE_POSTGRES_DIR)
            except DatabaseUnavailableError as error:
                self._failure = str(error)
                raise psycopg.OperationalError(str(error)) from error
        return super()._connect(timeout)


class DatabaseWrapper(base.DatabaseWrapper):
    """Connects to the embedded server, and creates a missing database."""

    client_class = DatabaseClient
    pool_class: ClassVar[type[ReconnectingPool]] = RestartingPool
    session_statement: ClassVar[str] = ""  #: Not needed: the server is configured accordingly.

    def get_connection_params(self) -> dict[str, Any]:
        """Return psycopg's parameters with the socket of the running server; raise OperationalError without one."""
        try:
            server = embedded_server(settings.CORECUBE_POSTGRES_DIR)
        except DatabaseUnavailableError as error:
            # As a database error, so that callers retry.
            raise OperationalError(str(error)) from error
        # Without a name, Django uses the maintenance database.
        if name := self.settings_dict["NAME"]:
            ensure_database(server, name)
        self.settings_dict.update(HOST=server.socket_dir, PORT=server.port, USER=server.user)
        return super().get_connection_params()

    def address(self) -> dict[str, str]:
        """Return the current socket of the server, which may change with a restart."""
        return {"host": embedded_server(settings.CORECUBE_POSTGRES_DIR).socket_dir}
