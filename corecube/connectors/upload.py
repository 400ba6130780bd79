"""Uploaded files, stored under `var/uploads` or in a bucket, and read like a folder."""

import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Self

from django.conf import settings
from pydantic import ConfigDict

from corecube.connectors.folder import FolderConnector
from corecube.connectors.places import BucketPlace, bucket_and_prefix, s3_account
from corecube.connectors.s3 import S3Config, S3Connector
from corecube.connectors.setup import SourceConfig, SourceSetup, remove_folder, upload_folder
from corecube.connectors.types import Capability, Connector, ItemError, ItemProblem, SourceItem, require
from corecube.errors import ConfigError, UnavailableError
from corecube.models import Connection

logger = logging.getLogger(__name__)

_BLOCK: Final = 1 << 20
_NAME_BYTES: Final = 200
_MAX_FOLDERS: Final = 20
_IS_FILE: Final = "A file with the name of this folder exists."
_IS_FOLDER: Final = "A folder with the name of this file exists."


class UploadConfig(SourceConfig):
    """Which uploads to include."""

    model_config = ConfigDict(extra="ignore")


_ELSEWHERE: Final = (
    "Let workers and web servers share the upload folder in CORECUBE_VAR_DIR, or store uploads in a bucket "
    "(CORECUBE_UPLOADS_TO)."
)


class UploadFolder(FolderConnector):
    """Reads the uploads of a connection from this machine. Before the first upload there is no folder."""

    def check(self) -> None:
        """Raise ConfigError when the uploads cannot be listed."""
        if self.root.exists():
            super().check()

    def require_files(self) -> None:
        """Raise ConfigError when this machine does not have the folder, though files were uploaded."""
        if not self.root.is_dir():
            raise ConfigError(self.missing_message())

    def missing_message(self) -> str:
        """Return the error message for a machine without the folder."""
        return f"The upload folder {self.root} is not on this machine. {_ELSEWHERE}"

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the uploads."""
        if self.root.exists():
            yield from super().items()


class UploadBucket(S3Connector):
    """Reads the uploads of a connection from the bucket in the settings."""

    def check(self) -> None:
        """Raise ConfigError when the uploads cannot be listed."""
        require(self.preflight())

    def require_files(self) -> None:
        """Raise ConfigError when the bucket has no files of the connection, though files were uploaded."""
        if not any(True for _ in self.items()):
            raise ConfigError(
                "The bucket of uploads has no files of this connection. Copy the folder `uploads` of the machine that "
                "has them to CORECUBE_UPLOADS_TO, and sync again."
            )

    def _item(self, entry: Mapping[str, Any]) -> SourceItem | ItemProblem:
        """Return the item with the name that it has in a folder, so that a document stays the same."""
        found, name = super()._item(entry), str(entry["Key"]).removeprefix(self.config.prefix)
        if isinstance(found, ItemProblem):
            return replace(found, external_id=name)
        return replace(found, external_id=name, name=name, uri="")


@dataclass(frozen=True)
class UploadConnector(Connector):
    """Reads the uploads of a connection, wherever they are stored."""

    source: UploadFolder | UploadBucket

    @classmethod
    def from_setup(cls, setup: SourceSetup) -> Self:
        """Return the connector of a connection's uploads; raise ConfigError."""
        config = setup.read(UploadConfig)
        limit, globs = setup.limit(config.max_bytes), config.globs()
        place = upload_place()
        if place is None:
            return cls(UploadFolder(setup.uploads, limit, globs))
        account = place.account
        objects = S3Config(
            include=config.include,
            exclude=config.exclude,
            max_bytes=config.max_bytes,
            bucket=place.bucket,
            prefix=f"{place.prefix}{setup.connection}/",
            endpoint=account.endpoint,
            region=account.region,
            addressing=account.addressing,
        )
        secrets = {"access_key": account.access_key, "secret_key": account.secret_key}
        return cls(UploadBucket(objects, secrets, limit, globs))

    def preflight(self) -> Iterator[Capability]:
        """Yield the checks of where they are stored."""
        return self.source.preflight()

    def check(self) -> None:
        """Raise ConfigError when the uploads cannot be listed."""
        self.source.check()

    def require_files(self) -> None:
        """Raise ConfigError when there are no files, though some were uploaded."""
        self.source.require_files()

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the uploads."""
        return self.source.items()

    def read(self, item: SourceItem) -> bytes:
        """Return an upload's bytes; raise ItemError."""
        return self.source.read(item)


def upload_place() -> BucketPlace | None:
    """Return the bucket in which uploads are stored; None for the folder on this machine. Raises ConfigError."""
    if not settings.CORECUBE_UPLOADS_TO:
        return None
    return BucketPlace(*bucket_and_prefix(settings.CORECUBE_UPLOADS_TO), s3_account("UPLOADS"), UnavailableError)


def remove_uploads(connection_id: int) -> None:
    """Delete a connection's uploads. If that fails, it is logged; no other connection reads them."""
    remove_folder(settings.CORECUBE_UPLOADS_DIR / str(connection_id))
    if place := upload_place():
        try:
            for name in place.names(str(connection_id)):
                place.delete(name)
        except UnavailableError as error:
            logger.warning("uploads.removal_failed connection=%d error=%s", connection_id, error)


def check_upload(name: str, size: int) -> None:
    """Raise ItemError for an invalid file name or a size, in bytes, over the limit."""
    _plain_name(name)
    if size > settings.CORECUBE_MAX_FILE_BYTES:
        raise _too_large()


def save_upload(connection: Connection, *, name: str, content: IO[bytes], folder: str = "") -> str:
    """Store an upload under its name, replacing any, and return the name; raise ItemError for a bad name or size.

    `folder` is a path below the connection's uploads, such as "handbook/2026"; empty for none. Raises UnavailableError
    if the bucket of uploads does not store it.
    """
    path = PurePosixPath(*_folders(folder), _plain_name(name))
    if place := upload_place():
        _save_in_bucket(place, connection.pk, path, content)
    else:
        _save_in_folder(upload_folder(connection) / path, content)
    return path.name


def _save_in_folder(target: Path, content: IO[bytes]) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ItemError("bad_name", _IS_FILE) from error
    if target.is_dir():
        raise ItemError("bad_name", _IS_FOLDER)
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


def _save_in_bucket(place: BucketPlace, connection_id: int, path: PurePosixPath, content: IO[bytes]) -> None:
    """Store an upload as an object, under a name that it could have in a folder."""
    root = PurePosixPath(str(connection_id))
    stored = content.read(settings.CORECUBE_MAX_FILE_BYTES + 1)
    if len(stored) > settings.CORECUBE_MAX_FILE_BYTES:
        raise _too_large()
    if any(place.has(str(root / parent)) for parent in path.parents if parent.name):
        raise ItemError("bad_name", _IS_FILE)
    if place.has_folder(str(root / path)):
        raise ItemError("bad_name", _IS_FOLDER)
    place.write(str(root / path), stored)


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
