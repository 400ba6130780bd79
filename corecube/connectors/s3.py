"""A bucket of an S3-compatible object store."""

import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import Any, Final, Literal, Self

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import Field

from corecube.connectors.globs import Globs
from corecube.connectors.http import USER_AGENT
from corecube.connectors.network import checked_field
from corecube.connectors.setup import FieldError, SourceConfig, SourceSetup, too_large
from corecube.connectors.types import Capability, Connector, ItemError, ItemProblem, SourceItem
from corecube.errors import UnavailableError

#: Storage classes whose objects must be restored before they can be read.
_ARCHIVED: Final = frozenset({"GLACIER", "DEEP_ARCHIVE"})
_REFUSED: Final = frozenset({"AccessDenied", "403", "AllAccessDisabled", "AccountProblem"})
_UNKNOWN_KEY: Final = frozenset(
    {"InvalidAccessKeyId", "SignatureDoesNotMatch", "401", "ExpiredToken", "InvalidToken", "AuthFailure"}
)
_BLOCK: Final = 1 << 18
_READ_SECONDS: Final = 300
#: Replaces the session variables that botocore reads from the environment or a profile.
_NO_ENVIRONMENT: Final = {
    "profile": (None, None, None, None),
    "config_file": (None, None, "", None),
    "credentials_file": (None, None, "", None),
}


class S3Config(SourceConfig):
    """Bucket and key prefix of a connection."""

    bucket: str = Field(min_length=3, max_length=255, pattern=r"^[A-Za-z0-9._-]+$", description="Name of the bucket.")
    prefix: str = Field("", max_length=1024, description="Only keys with this prefix.")
    endpoint: str = Field("", description="Address of the service; empty for Amazon.")
    region: str = Field("us-east-1", pattern=r"^[a-z0-9-]+$", description="Region of the bucket.")
    addressing: Literal["auto", "path", "virtual"] = Field("auto", description="Bucket name in the path or the host.")


@dataclass(frozen=True)
class S3Connector(Connector):
    """Lists a bucket below a prefix and reads its objects.

    The secrets `access_key` and `secret_key` sign the requests (with `session_token` for temporary credentials);
    without them the requests are anonymous. No other credentials of the machine are used.
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
            checked_field("endpoint", config.endpoint, "The endpoint is invalid.")
        secrets = {name: setup.secret(name) for name in ("access_key", "secret_key", "session_token")}
        if bool(secrets["access_key"]) != bool(secrets["secret_key"]):
            missing = "secret_key" if secrets["access_key"] else "access_key"
            raise FieldError(missing, "A bucket needs both an access key and a secret key, or neither.")
        return cls(config, secrets, setup.limit(config.max_bytes), config.globs())

    def preflight(self) -> Iterator[Capability]:
        """Yield reach, authenticate, list and read."""
        # Without retries: somebody waits for the check.
        client = self._connected(attempts=1)
        try:
            page = client.list_objects_v2(Bucket=self.config.bucket, Prefix=self.config.prefix, MaxKeys=1)
        except (ClientError, BotoCoreError) as error:
            yield from _failed_listing(error)
            return
        yield Capability.passed("reach", "The service answers.")
        yield Capability.passed("authenticate", "The keys are valid." if self.secrets["access_key"] else "No keys.")
        yield Capability.passed("list", "The bucket can be listed.")
        for entry in page.get("Contents", ()):
            try:
                client.head_object(Bucket=self.config.bucket, Key=entry["Key"])
            except (ClientError, BotoCoreError) as error:
                yield Capability.failed("read", f"Objects cannot be read: {error_label(error)}.")
            else:
                yield Capability.passed("read", "Objects can be read.")

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the objects in the order of their keys; raise UnavailableError if a page cannot be fetched."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self.config.bucket, Prefix=self.config.prefix
        )
        folder = self.config.prefix.rpartition("/")[0]
        try:
            for page in pages:
                for entry in page.get("Contents", ()):
                    # Patterns match the key without the folders of the prefix.
                    path = entry["Key"][len(folder) :].lstrip("/")
                    if not entry["Key"].endswith("/") and self.globs.includes(path):
                        yield self._item(entry)
        except (ClientError, BotoCoreError) as error:
            raise UnavailableError(f"The bucket cannot be listed: {error_label(error)}.") from error

    def read(self, item: SourceItem) -> bytes:
        """Return an object's bytes; raise ItemError if it is too large, too slow, deleted or refused."""
        try:
            answer = self._client.get_object(Bucket=self.config.bucket, Key=item.locator)
            with closing(answer["Body"]) as body:
                content, ends = bytearray(), time.monotonic() + _READ_SECONDS
                for block in body.iter_chunks(_BLOCK):
                    content += block
                    if len(content) > self.max_bytes:
                        raise too_large(len(content), self.max_bytes)
                    if time.monotonic() > ends:
                        raise ItemError("timeout", f"The object took longer than {_READ_SECONDS} seconds.")
                return bytes(content)
        except (ClientError, BotoCoreError) as error:
            reason = "unavailable" if _is_temporary(error) else "unreadable"
            raise ItemError(reason, f"The object cannot be read: {error_label(error)}.") from error

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 -- botocore makes its clients' classes at run time
        return self._connected(attempts=4)

    def _connected(self, *, attempts: int) -> Any:  # noqa: ANN401 -- botocore makes its clients' classes at run time
        client = s3_client(
            endpoint=self.config.endpoint,
            region=self.config.region,
            addressing=self.config.addressing,
            attempts=attempts,
            **self.secrets,
        )
        weakref.finalize(self, client.close)
        return client

    def _item(self, entry: Mapping[str, Any]) -> SourceItem | ItemProblem:
        key, size = str(entry["Key"]), int(entry["Size"])
        if entry.get("StorageClass") in _ARCHIVED:
            return ItemProblem(key, "archived", "The object is archived and must be restored first.")
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


def s3_client(  # noqa: PLR0913 -- keyword-only, each a plain fact
    *,
    endpoint: str,
    region: str,
    addressing: str,
    access_key: str,
    secret_key: str,
    session_token: str = "",
    attempts: int = 4,
) -> Any:  # noqa: ANN401 -- botocore makes its clients' classes at run time
    """Return a client, which ignores the machine's environment and config files; without keys it is anonymous.

    An empty `endpoint` is Amazon's.
    """
    import botocore.session  # noqa: PLC0415 -- it takes as long as a tenth of the application, for buckets alone
    from botocore.config import Config  # noqa: PLC0415

    session = botocore.session.Session(session_vars=_NO_ENVIRONMENT)
    # Always set: otherwise botocore reads the environment and calls the cloud's metadata service.
    session.set_credentials(access_key or "anonymous", secret_key or "anonymous", session_token or None)
    return session.create_client(
        "s3",
        region_name=region,
        endpoint_url=endpoint or None,
        config=Config(
            user_agent=USER_AGENT,
            connect_timeout=10,
            read_timeout=30,
            retries={"mode": "standard", "total_max_attempts": attempts},
            s3={"addressing_style": addressing},
            proxies={},
            signature_version=None if access_key else botocore.UNSIGNED,
        ),
    )


def error_label(error: Exception) -> str:
    """Return an error's code or type; the service's messages may contain keys and are not shown."""
    return _code(error) or type(error).__name__


def _failed_listing(error: Exception) -> Iterator[Capability]:
    code = _code(error)
    if not code:
        yield Capability.failed("reach", f"The service cannot be reached: {error_label(error)}.")
        return
    yield Capability.passed("reach", "The service answers.")
    if code in _UNKNOWN_KEY:
        yield Capability.failed("authenticate", f"The keys are refused: {error_label(error)}.")
        return
    yield Capability.passed("authenticate", "The keys are valid.")
    problem = "No permission to list the bucket" if code in _REFUSED else "The bucket cannot be listed"
    yield Capability.failed("list", f"{problem}: {error_label(error)}.")


def _code(error: Exception) -> str:
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""


def _is_temporary(error: Exception) -> bool:
    """Return whether a retry may help: no answer, a server error, or too many requests."""
    if not isinstance(error, ClientError):
        return True
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return bool(status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS)
