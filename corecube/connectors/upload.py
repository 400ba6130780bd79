"""Files that people upload; they are kept under `var/uploads` and read like a folder."""

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final, Self

from django.conf import settings
from pydantic import ConfigDict

from corecube.connectors.folder import FolderConnector
from corecube.connectors.setup import SourceConfig, SourceSetup
from corecube.connectors.types import ItemError, ItemProblem, SourceItem
from corecube.errors import ConfigError
from corecube.models import Connection

logger = logging.getLogger(__name__)

_BLOCK: Final = 1 << 20
_NAME_BYTES: Final = 200


def upload_folder(connection: Connection) -> Path:
    """Return the folder that holds a connection's uploads; it is made with the first of them.

    It bears the connection's number, which no later connection gets, unlike the slug.
    """
    folder: Path = settings.CORECUBE_UPLOADS_DIR / str(connection.pk)
    return folder


class UploadConfig(SourceConfig):
    """What is taken of the uploads."""

    model_config = ConfigDict(extra="ignore")


class UploadConnector(FolderConnector):
    """Reads the uploads of a connection. Before the first one there is no folder, and nothing to read."""

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
            raise ConfigError(self.absence())

    def absence(self) -> str:
        """Return what is to be said where this machine does not have the folder."""
        return (
            f"The uploads' folder {self.root} is not on this machine. Workers and web servers have to share the "
            "uploads folder in CORECUBE_VAR_DIR."
        )

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the uploads."""
        if self.root.exists():
            yield from super().items()


def remove_uploads(folder: Path) -> None:
    """Remove a folder of uploads. What cannot be removed is logged and stays; no connection will read it."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        logger.warning("uploads.left folder=%s error=%s", folder, error.strerror)


def check_upload(name: str, size: int) -> None:
    """Raise ItemError for a name that is no plain file name, and for a size, in bytes, over the limit."""
    _plain_name(name)
    if size > settings.CORECUBE_MAX_FILE_BYTES:
        raise _too_large(settings.CORECUBE_MAX_FILE_BYTES)


def save_upload(connection: Connection, *, name: str, content: IO[bytes]) -> Path:
    """Keep an uploaded file under its own name, replacing an earlier one, and return where it lies.

    Raises ItemError for a name that is no plain file name, and for a file over the size limit.
    """
    folder = upload_folder(connection)
    target = folder / _plain_name(name)
    folder.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            _copy(content, file, limit=settings.CORECUBE_MAX_FILE_BYTES)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return target


def _plain_name(name: str) -> str:
    """Return the last part of the name; raise ItemError where that is nothing, hidden or not storable."""
    plain = PurePosixPath(name.replace("\\", "/")).name
    if not plain or plain.startswith(".") or not plain.isprintable() or len(plain.encode()) > _NAME_BYTES:
        raise ItemError(
            "bad_name", "The file needs an ordinary name of at most 200 bytes that does not start with a dot."
        )
    return plain


def _copy(source: IO[bytes], target: IO[bytes], *, limit: int) -> None:
    size = 0
    while block := source.read(_BLOCK):
        size += len(block)
        if size > limit:
            raise _too_large(limit)
        target.write(block)


def _too_large(limit: int) -> ItemError:
    return ItemError("too_large", f"The file has more than {limit / 2**20:.0f} MB, the most that is taken.")
