"""Files that people upload; they are kept under `var/uploads` and read like a folder."""

import os
import tempfile
from pathlib import Path, PurePosixPath
from typing import IO, Final

from django.conf import settings

from corecube.connectors.folder import FolderConnector
from corecube.connectors.types import ItemError
from corecube.models import Connection

_BLOCK: Final = 1 << 20
_NAME_BYTES: Final = 200


def upload_folder(connection: Connection) -> Path:
    """Return the folder that holds a connection's uploads."""
    folder: Path = settings.CORECUBE_UPLOADS_DIR / connection.slug
    return folder


def upload_connector(connection: Connection) -> FolderConnector:
    """Return the connector of a connection's uploads."""
    folder = upload_folder(connection)
    folder.mkdir(parents=True, exist_ok=True)
    return FolderConnector(folder, settings.CORECUBE_MAX_FILE_BYTES)


def save_upload(connection: Connection, *, name: str, content: IO[bytes]) -> Path:
    """Keep an uploaded file under its own name, replacing an earlier one, and return where it lies.

    Raises ItemError for a name that is no plain file name, and for a file over the size limit.
    """
    folder = upload_connector(connection).root
    target = folder / _plain_name(name)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            _copy(content, file, most=settings.CORECUBE_MAX_FILE_BYTES)
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


def _copy(source: IO[bytes], target: IO[bytes], *, most: int) -> None:
    size = 0
    while block := source.read(_BLOCK):
        size += len(block)
        if size > most:
            raise ItemError("too_large", f"The file has more than {most / 2**20:.0f} MB, the most that is taken.")
        target.write(block)
