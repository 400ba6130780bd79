"""The kinds of connections as people choose and fill them in: what each reads, its config and its secrets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from django.utils.module_loading import import_string

from corecube.connectors.setup import SourceConfig
from corecube.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Secret:
    """Something that a connector signs in with."""

    name: str
    label: str
    help: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of connection."""

    name: str
    label: str
    #: What it reads, in one sentence.
    purpose: str
    #: Where its connector and the model of its config are; imported when needed: some connectors bring large libraries.
    connector: str
    config: str
    secrets: tuple[Secret, ...] = ()
    #: The field of the config with the address that the secrets go to.
    goes_to: str = ""
    #: The field of the config that names files of this machine; unless it is an address, where the secrets go to it.
    local_in: str = ""
    #: Documents come to it; there is nothing to fetch before they do.
    is_fed: bool = False

    def model(self) -> type[SourceConfig]:
        """Return the model that checks this kind's config."""
        model: type[SourceConfig] = import_string(self.config)
        return model

    def reads_this_machine(self, config: Mapping[str, object]) -> bool:
        """Return whether a connection with this config reads files of the machine that it runs on."""
        is_address = str(config.get(self.local_in, "")).lower().startswith(("http://", "https://"))
        return bool(self.local_in) and not (is_address and self.local_in == self.goes_to)

    def destination(self, config: Mapping[str, object]) -> str:
        """Return the host that the secrets go to, with scheme and port; empty for a kind that sends none."""
        parts = urlsplit(str(config.get(self.goes_to, "")))
        return f"{parts.scheme}://{parts.netloc}".lower() if self.goes_to else ""


_TOKEN: Final = "A user's access token with the right to read, and no more."  # noqa: S105 -- a hint, no token

#: A kind of connection is one module or package, and one entry here.
KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind(
            "folder",
            "Folder on the server",
            "Reads the files below a folder that the server can reach, a mounted share for instance.",
            "corecube.connectors.folder.FolderConnector",
            "corecube.connectors.folder.FolderConfig",
            local_in="path",
        ),
        Kind(
            "upload",
            "Uploaded files",
            "Keeps the files that people upload here or over the API.",
            "corecube.connectors.upload.UploadConnector",
            "corecube.connectors.upload.UploadConfig",
            is_fed=True,
        ),
        Kind(
            "git",
            "Git repository",
            "Reads the files of one branch and fetches only what changed.",
            "corecube.connectors.git.GitConnector",
            "corecube.connectors.git.connector.GitConfig",
            (Secret("token", "Access token", f"{_TOKEN} Empty for a public repository."),),
            goes_to="url",
            local_in="url",
        ),
        Kind(
            "web",
            "Web site",
            "Crawls a site politely from its start pages on.",
            "corecube.connectors.web.WebConnector",
            "corecube.connectors.web.connector.WebConfig",
        ),
        Kind(
            "s3",
            "S3 bucket",
            "Reads the objects of a bucket, at Amazon or at any service that speaks the same.",
            "corecube.connectors.s3.S3Connector",
            "corecube.connectors.s3.S3Config",
            (
                Secret("access_key", "Access key", "Empty, with the secret key, for a public bucket."),
                Secret("secret_key", "Secret key"),
                Secret("session_token", "Session token", "Only where the service gave one."),
            ),
            goes_to="endpoint",
        ),
        Kind(
            "confluence",
            "Confluence spaces",
            "Reads pages, blog posts and attachments with the eyes of one user of the site.",
            "corecube.connectors.confluence.ConfluenceConnector",
            "corecube.connectors.confluence.connector.ConfluenceConfig",
            (Secret("token", "API or access token", _TOKEN),),
            goes_to="url",
        ),
        Kind(
            "push",
            "Pushed by programs",
            "Takes documents that programs send over the API.",
            "corecube.connectors.push.PushConnector",
            "corecube.connectors.push.PushConfig",
            is_fed=True,
        ),
    )
}


def kind_named(name: str) -> Kind:
    """Return a kind; raise ConfigError for a name that none has."""
    if name not in KINDS:
        message = f"There is no connector of kind {name!r}; there are: {', '.join(KINDS)}."
        raise ConfigError(message)
    return KINDS[name]
