"""Where backups and uploads are stored: a folder, or an S3 bucket below a prefix."""

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings

from corecube.connectors.s3 import error_label, s3_client
from corecube.errors import BackupError, ConfigError, CoreCubeError

_BUCKET: Final = "s3://"
_MISSING: Final = frozenset({"NoSuchKey", "404"})


class Place(ABC):
    """Stores pieces of bytes by name; names consist of folders and a file, separated by `/`."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Return what is stored under a name, None for nothing; raise BackupError."""

    @abstractmethod
    def write(self, name: str, content: bytes) -> None:
        """Store a content as a whole, in place of what the name has; raise BackupError."""

    @abstractmethod
    def names(self, folder: str = "") -> dict[str, datetime]:
        """Return the names in a folder and below, or all, each with the time when it was written; raise BackupError."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a name that may not exist; raise BackupError."""

    def flush(self) -> None:  # noqa: B027 -- nothing to do for services, which store before they answer
        """Return when all that was written outlives a loss of power."""


@dataclass(frozen=True, slots=True)
class S3Account:
    """An object store and the key that signs requests to it."""

    endpoint: str  #: Empty for Amazon's.
    region: str
    access_key: str
    secret_key: str = field(repr=False)

    @property
    def addressing(self) -> Literal["auto", "path"]:
        """Where the bucket's name is put: services other than Amazon's often have no host name for each bucket."""
        return "path" if self.endpoint else "auto"


def bucket_and_prefix(address: str) -> tuple[str, str]:
    """Return both parts of an address such as s3://bucket/prefix; a prefix ends with a slash. Raises ConfigError."""
    bucket, _, prefix = address.removeprefix(_BUCKET).partition("/")
    if not bucket or not address.startswith(_BUCKET):
        raise ConfigError("A place in a bucket has the form s3://bucket/prefix.")
    return bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else ""


def s3_account(purpose: str) -> S3Account:
    """Return the account in the settings for backups ("BACKUP") or uploads ("UPLOADS")."""
    names = ("ENDPOINT", "REGION", "ACCESS_KEY", "SECRET_KEY")
    return S3Account(*(getattr(settings, f"CORECUBE_{purpose}_S3_{name}") for name in names))


def place_at(address: str) -> Place:
    """Return the place of backups at a folder's path or an address such as s3://bucket/prefix; raise ConfigError."""
    if not address.startswith(_BUCKET):
        return FolderPlace(Path(address).expanduser().absolute())
    account, (bucket, prefix) = s3_account("BACKUP"), bucket_and_prefix(address)
    if not account.access_key or not account.secret_key:
        raise ConfigError("Set CORECUBE_BACKUP_S3_ACCESS_KEY and CORECUBE_BACKUP_S3_SECRET_KEY for a bucket.")
    return BucketPlace(bucket, prefix, account)


@dataclass(frozen=True)
class FolderPlace(Place):
    """A folder, closed to other accounts where it is created here."""

    root: Path

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file."""
        with _translated(f"{self.root} cannot be read"):
            try:
                return self.root.joinpath(name).read_bytes()
            except FileNotFoundError:
                return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file under another name first, so that one that exists is whole."""
        target = self.root / name
        with _translated(f"{self.root} cannot be written to"):
            # Not the folders above: without them a disk may not be mounted.
            self.root.mkdir(mode=0o700, exist_ok=True)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=self.root, prefix=".incoming-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                Path(draft).replace(target)
            finally:
                Path(draft).unlink(missing_ok=True)

    def names(self, folder: str = "") -> dict[str, datetime]:
        """Return the files of a folder."""
        with _translated(f"{self.root} cannot be read"):
            files = (Path(parent, file) for parent, _, files in os.walk(self.root / folder) for file in files)
            return {
                it.relative_to(self.root).as_posix(): datetime.fromtimestamp(it.stat().st_mtime, UTC) for it in files
            }

    def delete(self, name: str) -> None:
        """Delete a file."""
        with _translated(f"{self.root} cannot be written to"):
            self.root.joinpath(name).unlink(missing_ok=True)

    def flush(self) -> None:
        """Wait for the disks: once for all files is faster than for each."""
        os.sync()


@dataclass(frozen=True)
class BucketPlace(Place):
    """A bucket."""

    bucket: str
    prefix: str  #: Empty, or ends with a slash.
    account: S3Account
    failure: type[CoreCubeError] = BackupError

    def read(self, name: str) -> bytes | None:
        """Return the bytes of an object."""
        with _translated("The bucket cannot be read", self.failure):
            try:
                answer = self._client.get_object(Bucket=self.bucket, Key=self.prefix + name)
            except ClientError as error:
                if error_label(error) in _MISSING:
                    return None
                raise
            content: bytes = answer["Body"].read()
            return content

    def has(self, name: str) -> bool:
        """Return whether there is an object of a name; raise the place's error."""
        with _translated("The bucket cannot be read", self.failure):
            try:
                self._client.head_object(Bucket=self.bucket, Key=self.prefix + name)
            except ClientError as error:
                if error_label(error) in _MISSING:
                    return False
                raise
        return True

    def has_folder(self, name: str) -> bool:
        """Return whether there are objects below a name; raise the place's error."""
        with _translated("The bucket cannot be listed", self.failure):
            found = self._client.list_objects_v2(Bucket=self.bucket, Prefix=f"{self.prefix}{name}/", MaxKeys=1)
        return bool(found.get("Contents"))

    def write(self, name: str, content: bytes) -> None:
        """Store an object."""
        with _translated("The bucket cannot be written to", self.failure):
            self._client.put_object(Bucket=self.bucket, Key=self.prefix + name, Body=content)

    def names(self, folder: str = "") -> dict[str, datetime]:
        """Return the objects of a folder."""
        with _translated("The bucket cannot be listed", self.failure):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=f"{self.prefix}{folder}/" if folder else self.prefix
            )
            found = [entry for page in pages for entry in page.get("Contents", ())]
        return {str(it["Key"]).removeprefix(self.prefix): it["LastModified"] for it in found}

    def delete(self, name: str) -> None:
        """Delete an object."""
        with _translated("The bucket cannot be written to", self.failure):
            self._client.delete_object(Bucket=self.bucket, Key=self.prefix + name)

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 -- botocore makes its clients' classes at run time
        return s3_client(
            endpoint=self.account.endpoint,
            region=self.account.region,
            addressing=self.account.addressing,
            access_key=self.account.access_key,
            secret_key=self.account.secret_key,
        )


@contextmanager
def _translated(problem: str, failure: type[CoreCubeError] = BackupError) -> Iterator[None]:
    """Raise the error with the cause of a failed access; the messages of services may contain keys."""
    try:
        yield
    except OSError as error:
        raise failure(f"{problem}: {error.strerror}.") from error
    except (ClientError, BotoCoreError) as error:
        raise failure(f"{problem}: {error_label(error)}.") from error
