"""`manage.py dbshell` on the embedded database."""

from collections.abc import Iterable
from typing import Any

from django.db.backends.postgresql import client

from corecube.embedded import install


class DatabaseClient(client.DatabaseClient):
    """Opens the embedded database with the psql that belongs to its server."""

    def runshell(self, parameters: Iterable[str]) -> None:
        """Run psql, with the server running, until it ends."""
        # It starts the server and notes in the settings where it listens.
        self.connection.get_connection_params()
        super().runshell(parameters)

    @classmethod
    def settings_to_cmd_args_env(
        cls, settings_dict: dict[str, Any], parameters: Iterable[str]
    ) -> tuple[list[str], dict[str, str] | None]:
        """Return the command and its environment; raise DatabaseUnavailableError where the programs are missing."""
        (_, *arguments), environment = super().settings_to_cmd_args_env(settings_dict, parameters)
        return [str(install.program("psql")), *arguments], environment
