"""Connectors: each reads one kind of source. A new kind needs one module or package and one entry in `kinds.toml`."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from corecube.connectors.kinds import KINDS, kind_named
from corecube.connectors.local_files import command_files, local_files
from corecube.connectors.setup import SourceSetup, state_folder, upload_folder
from corecube.connectors.types import Connector, IncrementalConnector
from corecube.errors import ConfigError
from corecube.models import Connection
from corecube.secrets import unseal


def connector_for(connection: Connection, secrets: Mapping[str, str] | None = None) -> Connector:
    """Return a connection's connector; `secrets` replace the stored ones. Raises ConfigError for anything invalid."""
    connector: Connector = import_string(kind_named(connection.kind).connector).from_setup(
        setup_of(connection, secrets)
    )
    return connector


def is_incremental(kind: str) -> bool:
    """Return whether connectors of a kind can list changes without listing everything."""
    return kind in KINDS and issubclass(import_string(KINDS[kind].connector), IncrementalConnector)


def setup_of(connection: Connection, secrets: Mapping[str, str] | None = None) -> SourceSetup:
    """Return the setup of a connection's connector; raise ConfigError for a config that is not an object."""
    if not isinstance(connection.config, dict):
        raise ConfigError("The config must be a JSON object.")
    path = connection.command_path
    is_command_path = path and path == connection.config.get("path")
    return SourceSetup(
        config=connection.config,
        secrets=unseal(connection.sealed_secrets) if secrets is None else secrets,
        state=state_folder(connection),
        uploads=upload_folder(connection),
        max_bytes=settings.CORECUBE_MAX_FILE_BYTES,
        local=command_files(path) if is_command_path else local_files(),
        connection=connection.pk or 0,
    )


def checked_config(
    kind: str, config: Mapping[str, Any], secrets: Mapping[str, str] | None = None, *, command_path: str = ""
) -> None:
    """Raise ConfigError if such a connection cannot be read; a command on this machine chose `command_path`."""
    unsaved = Connection(kind=kind, slug="unsaved", config=dict(config), command_path=command_path)
    connector_for(unsaved, secrets).check()
