"""A bucket of an S3-compatible object store."""

import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import Any, Final, Literal, Self

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import Field

from corecube.connectors.globs import Globs
from corecube.connectors.http import USER_AGENT
from corecube.connectors.setup import FieldError, SourceConfig, SourceSetup, too_large
from corecube.connectors.types import Capability, ItemError, ItemProblem, SourceItem, require
from corecube.connectors.urls import checked_url
from corecube.errors import UnavailableError

#: Objects in these must be restored before they can be read, which takes hours and costs money.
_ARCHIVED: Final = frozenset({"GLACIER", "DEEP_ARCHIVE"})
_REFUSED: Final = frozenset({"AccessDenied", "403", "AllAccessDisabled", "AccountProblem"})
_UNKNOWN_KEY: Final = frozenset(
    {"InvalidAccessKeyId", "SignatureDoesNotMatch", "401", "ExpiredToken", "InvalidToken", "AuthFailure"}
)
_BLOCK: Final = 1 << 18
_READ_SECONDS: Final = 300


class S3Config(SourceConfig):
    """Which objects of which bucket."""

    bucket: str = Field(min_length=3, max_length=255, pattern=r"^[A-Za-z0-9._-]+$", description="Name of the bucket.")
    prefix: str = Field("", max_length=1024, description="Only keys that begin with this.")
    endpoint: str = Field("", description="Address of the service; empty is Amazon's.")
    region: str = Field("us-east-1", pattern=r"^[a-z0-9-]+$", description="Where the bucket is.")
    addressing: Literal["auto", "path", "virtual"] = Field("auto", description="Where the bucket's name goes.")


@dataclass(frozen=True)
class S3Connector:
    """Lists a bucket below a prefix and reads its objects.

    Secrets `access_key` and `secret_key` sign the requests (`session_token` where the service gave one); without
    them they are anonymous, as public buckets allow. No other credentials of the machine are used.
    """

    config: S3Config
    secrets: Mapping[str, str] = field(repr=False)
    max_bytes: int
    globs: Globs

    @classmethod
    def from_setup(cls, setup: SourceSetup) -> Self:
        """Return the connector of a connection; raise ConfigError."""
        config = setup.read(S3Config)
        if config.endpoint:
            try:
                checked_url(config.endpoint)
            except ItemError as error:
                raise FieldError("endpoint", f"The endpoint is not right. {error}") from error
        secrets = {name: setup.secret(name) for name in ("access_key", "secret_key", "session_token")}
        if bool(secrets["access_key"]) != bool(secrets["secret_key"]):
            lacking = "secret_key" if secrets["access_key"] else "access_key"
            raise FieldError(lacking, "A bucket needs both an access key and a secret key, or neither.")
        return cls(config, secrets, setup.limit(config.max_bytes), config.globs())

    def preflight(self) -> Iterator[Capability]:
        """Yield reach, authenticate, list and read."""
        try:
            page = self._client.list_objects_v2(Bucket=self.config.bucket, Prefix=self.config.prefix, MaxKeys=1)
        except (ClientError, BotoCoreError) as error:
            yield from _until_failure(error)
            return
        yield Capability.passed("reach", "The service answers.")
        yield Capability.passed("authenticate", "The keys are known." if self.secrets["access_key"] else "No keys.")
        yield Capability.passed("list", "The bucket can be listed.")
        for entry in page.get("Contents", ()):
            yield self._can_read(entry["Key"])

    def check(self) -> None:
        """Raise ConfigError when the bucket cannot be listed, or its first object not be read."""
        require(self.preflight())

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the objects in the order of their keys; raise UnavailableError when a page cannot be had."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self.config.bucket, Prefix=self.config.prefix
        )
        try:
            for page in pages:
                for entry in page.get("Contents", ()):
                    if self._is_wanted(entry["Key"]):
                        yield self._item(entry)
        except (ClientError, BotoCoreError) as error:
            raise UnavailableError(f"The bucket cannot be listed: {_said(error)}.") from error

    def read(self, item: SourceItem) -> bytes:
        """Return an object's bytes; raise ItemError for one that is too large, too slow, gone or refused."""
        try:
            answer = self._client.get_object(Bucket=self.config.bucket, Key=item.locator)
            with closing(answer["Body"]) as body:
                return self._read(body.iter_chunks(_BLOCK))
        except (ClientError, BotoCoreError) as error:
            reason = "unavailable" if _is_passing(error) else "unreadable"
            raise ItemError(reason, f"The object cannot be read: {_said(error)}.") from error

    def _read(self, blocks: Iterable[bytes]) -> bytes:
        content, ends = bytearray(), time.monotonic() + _READ_SECONDS
        for block in blocks:
            content += block
            if len(content) > self.max_bytes:
                raise too_large(len(content), self.max_bytes)
            if time.monotonic() > ends:
                raise ItemError("timeout", f"The object took longer than {_READ_SECONDS} seconds.")
        return bytes(content)

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 -- botocore makes its clients' classes at run time
        """The client; nothing of it is taken from the machine's environment or files."""
        session = botocore.session.Session(session_vars=_NO_ENVIRONMENT)
        key, secret = self.secrets["access_key"], self.secrets["secret_key"]
        # Set in any case: without any, botocore looks for some in the environment and asks the cloud's own service.
        session.set_credentials(key or "anonymous", secret or "anonymous", self.secrets["session_token"] or None)
        client = session.create_client(
            "s3",
            region_name=self.config.region,
            endpoint_url=self.config.endpoint or None,
            config=Config(
                user_agent=USER_AGENT,
                connect_timeout=10,
                read_timeout=30,
                retries={"mode": "standard", "total_max_attempts": 4},
                s3={"addressing_style": self.config.addressing},
                proxies={},
                signature_version=None if key else botocore.UNSIGNED,
            ),
        )
        weakref.finalize(self, client.close)
        return client

    def _can_read(self, key: str) -> Capability:
        try:
            self._client.head_object(Bucket=self.config.bucket, Key=key)
        except (ClientError, BotoCoreError) as error:
            return Capability.failed("read", f"Objects cannot be read: {_said(error)}.")
        return Capability.passed("read", "Objects can be read.")

    def _is_wanted(self, key: str) -> bool:
        """Return whether a key is that of an object, not of a folder, and one that the patterns take."""
        return not key.endswith("/") and self.globs.want(self._path(key))

    def _path(self, key: str) -> str:
        """Return a key below the prefix, as patterns see it; a prefix that ends within a name keeps that name."""
        folder = self.config.prefix.rpartition("/")[0]
        return key[len(folder) :].lstrip("/")

    def _item(self, entry: Mapping[str, Any]) -> SourceItem | ItemProblem:
        key, size = str(entry["Key"]), int(entry["Size"])
        if entry.get("StorageClass") in _ARCHIVED:
            return ItemProblem(key, "archived", "The object lies in an archive and would have to be restored first.")
        if size > self.max_bytes:
            error = too_large(size, self.max_bytes)
            return ItemProblem(key, error.reason, str(error))
        modified: datetime = entry["LastModified"]
        return SourceItem(
            external_id=key,
            name=PurePosixPath(key).name,
            uri=f"s3://{self.config.bucket}/{key}",
            locator=key,
            modified_at=modified,
            version=str(entry.get("ETag", "")).strip('"'),
        )


#: Session variables that would be read from the environment or a profile, each made a constant.
_NO_ENVIRONMENT: Final = {
    "profile": (None, None, None, None),
    "config_file": (None, None, "", None),
    "credentials_file": (None, None, "", None),
}


def _until_failure(error: Exception) -> Iterator[Capability]:
    """Yield what must have worked for a listing to fail in this way, and then what failed."""
    code = _code(error)
    if not code:
        yield Capability.failed("reach", f"The service cannot be reached: {_said(error)}.")
        return
    yield Capability.passed("reach", "The service answers.")
    if code in _UNKNOWN_KEY:
        yield Capability.failed("authenticate", f"The keys are refused: {_said(error)}.")
        return
    yield Capability.passed("authenticate", "The keys are known.")
    what = "The bucket may not be listed" if code in _REFUSED else "The bucket cannot be listed"
    yield Capability.failed("list", f"{what}: {_said(error)}.")


def _code(error: Exception) -> str:
    """Return the service's word for an error, empty when the service did not answer."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""


def _is_passing(error: Exception) -> bool:
    """Return whether trying again may help: no answer, an error of the server's own, or too many requests."""
    if not isinstance(error, ClientError):
        return True
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return bool(status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS)


def _said(error: Exception) -> str:
    """Return a short word for an error; messages of the service may repeat keys and are left out."""
    return _code(error) or type(error).__name__
