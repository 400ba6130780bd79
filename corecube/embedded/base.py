"""Django's PostgreSQL backend on the embedded server, which it starts on first use and after a crash."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, ClassVar, Final

import psycopg
from django.conf import settings
from django.db import Error, connection
from django.db.backends.postgresql import client
from django.db.utils import OperationalError

from corecube.embedded import install
from corecube.embedded.server import embedded_server, ensure_database, restarted_server
from corecube.errors import DatabaseUnavailableError
from corecube.postgresql import base
from corecube.postgresql.base import ReconnectingPool, Session

logger = logging.getLogger(__name__)

_INTERVAL_SECONDS: Final = 0.5
_JOIN_SECONDS: Final = 5.0  #: Maximum wait for a running check at the end of the block.


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


@contextmanager
def watched_database() -> Iterator[None]:
    """Check the embedded database twice a second during the block, so that no request has to wait for a restart.

    A check connects, which restarts a stopped server.
    """
    if connection.settings_dict["ENGINE"] != "corecube.embedded":
        yield
        return
    is_over = Event()
    watch = Thread(target=_watch, args=(is_over,), name="database-watch", daemon=True)
    watch.start()
    try:
        yield
    finally:
        is_over.set()
        watch.join(_JOIN_SECONDS)


def _watch(is_over: Event) -> None:
    was_available = True
    while not is_over.wait(_INTERVAL_SECONDS):
        is_available = _is_available(was_available=was_available)
        if is_available and not was_available:
            logger.warning("database.available_again")
        was_available = is_available


def _is_available(*, was_available: bool) -> bool:
    try:
        connection.ensure_connection()
    except Error as error:
        if was_available:
            logger.warning("database.unavailable error=%s", error)
        return False
    finally:
        connection.close()
    return True
