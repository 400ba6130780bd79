"""Inputs of a connector: its validated config, its secrets and its limits, and the connection's folders on disk.

A folder's name is the connection's number: no later connection gets it, unlike the slug.
"""

import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from corecube.connectors.globs import Globs
from corecube.connectors.local_files import NO_FILES, LocalFiles
from corecube.connectors.types import ItemError
from corecube.errors import ConfigError
from corecube.models import Connection

logger = logging.getLogger(__name__)
_Config = TypeVar("_Config", bound=BaseModel)


class FieldError(ConfigError):
    """One field of a config, or one secret, is invalid."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


class SourceConfig(BaseModel):
    """The config fields of every connector; each kind adds more."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    include: tuple[str, ...] = Field((), description="Patterns of the paths to include; empty includes all.")
    exclude: tuple[str, ...] = Field((), description="Patterns of the paths to exclude.")
    max_bytes: int | None = Field(None, ge=1, description="Maximum size of an item, up to the installation's limit.")

    def globs(self) -> Globs:
        """Return the compiled patterns; raise FieldError for an invalid one."""
        for name, patterns in (("include", self.include), ("exclude", self.exclude)):
            try:
                Globs(patterns, ())
            except ConfigError as error:
                raise FieldError(name, str(error)) from error
        return Globs(self.include, self.exclude)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSetup:
    """Inputs of a connector."""

    config: Mapping[str, Any]
    #: Decrypted; they stay in memory and never appear in messages.
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    state: Path  #: Folder of what the connector stores between syncs; it is removed with the connection.
    uploads: Path  #: Folder of the files that are uploaded to the connection.
    max_bytes: int  #: The installation's limit for one item.
    local: LocalFiles = NO_FILES  #: Files on this machine that the connector may read.
    connection: int = 0  #: The connection's primary key; 0 for one that is not stored yet.

    def read(self, model: type[_Config]) -> _Config:
        """Return the validated config; raise ConfigError that names each invalid field and never its value."""
        try:
            return model.model_validate(dict(self.config))
        except ValidationError as error:
            problems = (
                f"{'.'.join(map(str, it['loc'])) or 'config'}: {it['msg']}" for it in error.errors(include_input=False)
            )
            raise ConfigError(f"The config is invalid. {'; '.join(problems)}.") from None

    def secret(self, name: str) -> str:
        """Return a secret, empty if there is none; raise FieldError for one with an unprintable character."""
        value = self.secrets.get(name, "")
        if value.isprintable():
            return value
        raise FieldError(name, f"The secret {name} contains an unprintable character.")

    def limit(self, configured: int | None) -> int:
        """Return the size limit of one item in bytes: the lower of the connection's and the installation's."""
        return min(configured or self.max_bytes, self.max_bytes)


def too_large(size: int, limit: int) -> ItemError:
    """Return the error of an item that exceeds the limit; both in bytes."""
    return ItemError("too_large", f"The file has {size / 2**20:.1f} MB; the maximum is {limit / 2**20:.1f} MB.")


def upload_folder(connection: Connection) -> Path:
    """Return the folder of a connection's uploads; it is created with the first upload."""
    folder: Path = settings.CORECUBE_UPLOADS_DIR / str(connection.pk)
    return folder


def state_folder(connection: Connection) -> Path:
    """Return the folder of a connector's stored state (repository copy, crawled pages); the connector creates it."""
    folder: Path = settings.CORECUBE_SOURCES_DIR / str(connection.pk)
    return folder


def remove_folder(folder: Path) -> None:
    """Remove a connection's folder. If that fails, it is logged; no other connection reads the folder."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        logger.warning("connection_folder.removal_failed folder=%s error=%s", folder, error.strerror)
