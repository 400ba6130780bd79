"""Connectors: each reads one kind of source. A new kind is one module and one line here."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from corecube.connectors.folder import FolderConnector
from corecube.connectors.types import Connector, ItemError, ItemProblem, SourceItem
from corecube.connectors.upload import upload_connector
from corecube.errors import ConfigError
from corecube.models import Connection

CONNECTORS: Final[Mapping[str, Callable[[Connection], Connector]]] = {
    "folder": FolderConnector.for_connection,
    "upload": upload_connector,
}


def connector_for(connection: Connection) -> Connector:
    """Return the connector that reads a connection; raise ConfigError when its kind or config is wrong."""
    if connection.kind not in CONNECTORS:
        message = f"There is no connector of kind {connection.kind!r}; there are: {', '.join(CONNECTORS)}."
        raise ConfigError(message)
    if not isinstance(connection.config, dict):
        raise ConfigError("The config must be a JSON object.")
    return CONNECTORS[connection.kind](connection)


def checked_config(kind: str, config: Mapping[str, Any]) -> None:
    """Raise ConfigError when a connection with this kind and config could not be read."""
    connector_for(Connection(kind=kind, slug="unsaved", config=dict(config))).check()


__all__ = ["CONNECTORS", "Connector", "ItemError", "ItemProblem", "SourceItem", "checked_config", "connector_for"]
