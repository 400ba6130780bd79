"""The kinds of connections: label, purpose, connector, config and secrets of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from django.utils.module_loading import import_string

from corecube.connectors.setup import SourceConfig
from corecube.data import read_toml
from corecube.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Secret:
    """A credential of a connector."""

    name: str
    label: str
    help: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of connection."""

    name: str
    label: str
    purpose: str  #: What it reads, in one sentence.
    #: Dotted paths of the connector and of its config's model; imported when needed: some have large dependencies.
    connector: str
    config: str
    secrets: tuple[Secret, ...] = ()
    address_field: str = ""  #: The config field with the address that receives the secrets.
    #: The config field with a path on this machine; if it is also the address field, it may be a URL instead.
    path_field: str = ""
    receives_documents: bool = False  #: Documents are sent to the connection; before that there is nothing to fetch.

    def model(self) -> type[SourceConfig]:
        """Return the model that checks this kind's config."""
        model: type[SourceConfig] = import_string(self.config)
        return model

    def reads_local_files(self, config: Mapping[str, object]) -> bool:
        """Return whether a connection with this config reads files of the machine that it runs on."""
        is_address = str(config.get(self.path_field, "")).lower().startswith(("http://", "https://"))
        return bool(self.path_field) and not (is_address and self.path_field == self.address_field)

    def destination(self, config: Mapping[str, object]) -> str:
        """Return the host that receives the secrets, with scheme and port; empty for a kind without secrets."""
        parts = urlsplit(str(config.get(self.address_field, "")))
        return f"{parts.scheme}://{parts.netloc}".lower() if self.address_field else ""


_TABLES: Final = read_toml("corecube.connectors", "kinds.toml")
KINDS: Final[Mapping[str, Kind]] = {
    row["name"]: Kind(**{**row, "secrets": tuple(Secret(**it) for it in row.get("secrets", ()))})
    for row in _TABLES["kind"]
}


def kind_named(name: str) -> Kind:
    """Return a kind; raise ConfigError for an unknown name."""
    if name not in KINDS:
        message = f"Unknown connector kind {name!r}. Available kinds: {', '.join(KINDS)}."
        raise ConfigError(message)
    return KINDS[name]
