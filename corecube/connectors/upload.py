"""Uploaded files, stored under `var/uploads` and read like a folder."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final, Self

from django.conf import settings
from pydantic import ConfigDict

from corecube.connectors.folder import FolderConnector
from corecube.connectors.setup import SourceConfig, SourceSetup, upload_folder
from corecube.connectors.types import ItemError, ItemProblem, SourceItem
from corecube.errors import ConfigError
from corecube.models import Connection

_BLOCK: Final = 1 << 20
_NAME_BYTES: Final = 200
_MAX_FOLDERS: Final = 20


class UploadConfig(SourceConfig):
    """Which uploads to include."""

    model_config = ConfigDict(extra="ignore")


class UploadConnector(FolderConnector):
    """Reads the uploads of a connection. Before the first upload there is no folder and nothing to read."""

    @classmethod
    def from_setup(cls, setup: SourceSetup) -> Self:
        """Return the connector of a connection's uploads; raise ConfigError."""
        config = setup.read(UploadConfig)
        return cls(setup.uploads, setup.limit(config.max_bytes), config.globs())

    def check(self) -> None:
        """Raise ConfigError when the uploads cannot be listed."""
        if self.root.exists():
            super().check()

    def require_folder(self) -> None:
        """Raise ConfigError when this machine does not have the folder, though files were uploaded."""
        if not self.root.is_dir():
            raise ConfigError(self.missing_message())

    def missing_message(self) -> str:
        """Return the error message for a machine without the folder."""
        return (
            f"The upload folder {self.root} is not on this machine. Workers and web servers must share the "
            "upload folder in CORECUBE_VAR_DIR."
        )

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the uploads."""
        if self.root.exists():
            yield from super().items()


def check_upload(name: str, size: int) -> None:
    """Raise ItemError for an invalid file name or a size, in bytes, over the limit."""
    _plain_name(name)
    if size > settings.CORECUBE_MAX_FILE_BYTES:
        raise _too_large()


def save_upload(connection: Connection, *, name: str, content: IO[bytes], folder: str = "") -> Path:
    """Store an upload under its name, replacing any, and return its path; raise ItemError for a bad name or size.

    `folder` is a path below the connection's uploads, such as "handbook/2026"; empty for none.
    """
    target = upload_folder(connection).joinpath(*_folders(folder)) / _plain_name(name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ItemError("bad_name", "A file with the name of this folder exists.") from error
    if target.is_dir():
        raise ItemError("bad_name", "A folder with the name of this file exists.")
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            while block := content.read(_BLOCK):
                file.write(block)
                if file.tell() > settings.CORECUBE_MAX_FILE_BYTES:
                    raise _too_large()
        Path(temporary).replace(target)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return target


def _folders(path: str) -> list[str]:
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    if len(parts) > _MAX_FOLDERS:
        raise ItemError("bad_name", f"The file must be at most {_MAX_FOLDERS} folders deep.")
    return [_plain_name(part) for part in parts]


def _plain_name(name: str) -> str:
    """Return the last part of a path; raise ItemError if it is empty, hidden, unprintable or too long."""
    plain = PurePosixPath(name.replace("\\", "/")).name
    if not plain or plain.startswith(".") or not plain.isprintable() or len(plain.encode()) > _NAME_BYTES:
        raise ItemError(
            "bad_name", "The file name must have at most 200 bytes, printable characters and no leading dot."
        )
    return plain


def _too_large() -> ItemError:
    limit = settings.CORECUBE_MAX_FILE_BYTES
    return ItemError("too_large", f"The file has more than {limit / 2**20:.0f} MB, the maximum size.")
