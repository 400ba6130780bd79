"""Django's PostgreSQL backend, pointed at the embedded server on first use."""

from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base

from corecube.embedded.server import embedded_server, ensure_database


class DatabaseWrapper(base.DatabaseWrapper):
    """Connects to the embedded server and creates the database when it is not there yet."""

    def get_connection_params(self) -> dict[str, Any]:
        """Return psycopg's parameters, with the socket of the running server."""
        server = embedded_server(settings.CORECUBE_POSTGRES_DIR)
        # Without a name Django means the maintenance database, to create or drop others from.
        if name := self.settings_dict["NAME"]:
            ensure_database(server, name)
        self.settings_dict.update(HOST=server.socket_dir, PORT=server.port, USER=server.user)
        return super().get_connection_params()
