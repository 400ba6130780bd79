"""The kinds of connections: label, purpose, connector, config and secrets of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from django.utils.module_loading import import_string

from corecube.connectors.setup import SourceConfig
from corecube.errors import ConfigError

_TOKEN: Final = "A user's access token with read permission only."  # noqa: S105 -- a hint, no token


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


#: Each kind is one module or package, and one entry here.
KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind(
            "folder",
            "Folder on the server",
            "Reads the files below a folder on the server, such as a mounted share.",
            "corecube.connectors.folder.FolderConnector",
            "corecube.connectors.folder.FolderConfig",
            path_field="path",
        ),
        Kind(
            "upload",
            "Uploaded files",
            "Stores files that users upload here or over the API.",
            "corecube.connectors.upload.UploadConnector",
            "corecube.connectors.upload.UploadConfig",
            receives_documents=True,
        ),
        Kind(
            "git",
            "Git repository",
            "Reads the files of one branch and fetches only what changed.",
            "corecube.connectors.git.connector.GitConnector",
            "corecube.connectors.git.connector.GitConfig",
            (Secret("token", "Access token", f"{_TOKEN} Empty for a public repository."),),
            address_field="url",
            path_field="url",
        ),
        Kind(
            "web",
            "Website",
            "Crawls a site from its start pages and follows robots.txt.",
            "corecube.connectors.web.connector.WebConnector",
            "corecube.connectors.web.connector.WebConfig",
        ),
        Kind(
            "s3",
            "S3 bucket",
            "Reads the objects of a bucket at Amazon or another S3-compatible service.",
            "corecube.connectors.s3.S3Connector",
            "corecube.connectors.s3.S3Config",
            (
                Secret("access_key", "Access key", "Leave both keys empty for a public bucket."),
                Secret("secret_key", "Secret key"),
                Secret("session_token", "Session token", "Only for temporary credentials."),
            ),
            address_field="endpoint",
        ),
        Kind(
            "confluence",
            "Confluence spaces",
            "Reads pages, blog posts and attachments with one user's permissions.",
            "corecube.connectors.confluence.connector.ConfluenceConnector",
            "corecube.connectors.confluence.connector.ConfluenceConfig",
            (Secret("token", "API or access token", _TOKEN),),
            address_field="url",
        ),
        Kind(
            "push",
            "Pushed by programs",
            "Stores documents that programs send over the API.",
            "corecube.connectors.push.PushConnector",
            "corecube.connectors.push.PushConfig",
            receives_documents=True,
        ),
    )
}


def kind_named(name: str) -> Kind:
    """Return a kind; raise ConfigError for an unknown name."""
    if name not in KINDS:
        message = f"There is no connector of kind {name!r}; there are: {', '.join(KINDS)}."
        raise ConfigError(message)
    return KINDS[name]
