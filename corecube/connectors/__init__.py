"""Connectors: each reads one kind of source. A new kind is one module or package and one entry in `kinds.py`."""

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.utils.module_loading import import_string

from corecube.connectors.kinds import KINDS
from corecube.connectors.local_files import LocalFiles, command_files, local_files
from corecube.connectors.setup import SourceSetup
from corecube.connectors.state import state_folder
from corecube.connectors.types import (
    Capability,
    Connector,
    IncrementalConnector,
    ItemError,
    ItemProblem,
    ProbedConnector,
    SourceItem,
)
from corecube.connectors.upload import upload_folder
from corecube.errors import ConfigError
from corecube.models import Connection
from corecube.secrets import unseal

#: Where each kind's connector is.
CONNECTORS: Final[Mapping[str, str]] = {kind.name: kind.connector for kind in KINDS.values()}


def connector_for(connection: Connection, secrets: Mapping[str, str] | None = None) -> ProbedConnector:
    """Return the connector that reads a connection; raise ConfigError when its kind, config or secrets are wrong.

    `secrets` stand in for those that the connection has stored.
    """
    if connection.kind not in CONNECTORS:
        message = f"There is no connector of kind {connection.kind!r}; there are: {', '.join(CONNECTORS)}."
        raise ConfigError(message)
    setup = setup_of(connection, secrets)
    connector: ProbedConnector = import_string(CONNECTORS[connection.kind]).from_setup(setup)
    return connector


def tells_changes(kind: str) -> bool:
    """Return whether connectors of a kind can tell what changed without listing everything."""
    return kind in CONNECTORS and issubclass(import_string(CONNECTORS[kind]), IncrementalConnector)


def setup_of(connection: Connection, secrets: Mapping[str, str] | None = None) -> SourceSetup:
    """Return what a connection hands to its connector; raise ConfigError for a config that is no object."""
    if not isinstance(connection.config, dict):
        raise ConfigError("The config must be a JSON object.")
    return SourceSetup(
        config=connection.config,
        secrets=unseal(connection.sealed_secrets) if secrets is None else secrets,
        state=state_folder(connection),
        uploads=upload_folder(connection),
        max_bytes=settings.CORECUBE_MAX_FILE_BYTES,
        local=_local_files_of(connection),
        connection=connection.pk or 0,
    )


def checked_config(
    kind: str, config: Mapping[str, Any], secrets: Mapping[str, str] | None = None, *, command_path: str = ""
) -> None:
    """Raise ConfigError when a connection with this kind, config and secrets could not be read.

    `command_path` is a path that a command on this machine chose.
    """
    unsaved = Connection(kind=kind, slug="unsaved", config=dict(config), command_path=command_path)
    connector_for(unsaved, secrets).check()


def _local_files_of(connection: Connection) -> LocalFiles:
    """Return what a connection may read of this machine's files; more where a command chose its path."""
    path = connection.command_path
    return command_files(path) if path and path == connection.config.get("path") else local_files()


__all__ = [
    "CONNECTORS",
    "Capability",
    "Connector",
    "ItemError",
    "ItemProblem",
    "ProbedConnector",
    "SourceItem",
    "checked_config",
    "connector_for",
    "setup_of",
    "tells_changes",
]
