"""What a connector is made from: its checked config, its secrets and its limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from corecube.connectors.globs import Globs
from corecube.connectors.local_files import NO_FILES, LocalFiles
from corecube.connectors.types import ItemError
from corecube.errors import ConfigError


class FieldError(ConfigError):
    """One field of a config, or one secret, cannot be right."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


class SourceConfig(BaseModel):
    """What every connector's config may hold; each kind adds its own fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    include: tuple[str, ...] = Field((), description="Patterns of the paths that are taken in; none takes all.")
    exclude: tuple[str, ...] = Field((), description="Patterns of the paths that are left out.")
    max_bytes: int | None = Field(None, ge=1, description="Largest item, at most the installation's own limit.")

    def globs(self) -> Globs:
        """Return the patterns, compiled; raise ConfigError for one that is none."""
        for name, patterns in (("include", self.include), ("exclude", self.exclude)):
            try:
                Globs(patterns, ())
            except ConfigError as error:
                raise FieldError(name, str(error)) from error
        return Globs(self.include, self.exclude)


_Config = TypeVar("_Config", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSetup:
    """What a connection hands to its connector."""

    config: Mapping[str, Any]
    #: Decrypted; they stay in memory and out of every message.
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: Where the connector may keep what spares it work the next time; it is removed with the connection.
    state: Path
    #: Where the files lie that people upload to the connection.
    uploads: Path
    #: The installation's limit for one item.
    max_bytes: int
    #: What it may read of this machine's files.
    local: LocalFiles = NO_FILES
    #: The connection's key, for what is kept in the database; 0 for one that is not stored yet.
    connection: int = 0

    def read(self, model: type[_Config]) -> _Config:
        """Return the config as a kind's own; raise ConfigError that names each field and never its value."""
        try:
            return model.model_validate(dict(self.config))
        except ValidationError as error:
            wrong = (f"{_place(it['loc'])}: {it['msg']}" for it in error.errors(include_input=False))
            raise ConfigError(f"The config is not right. {'; '.join(wrong)}.") from None

    def secret(self, name: str) -> str:
        """Return a secret, empty where there is none; raise ConfigError for one that no header could carry."""
        value = self.secrets.get(name, "")
        if value.isprintable():
            return value
        raise FieldError(name, f"The secret {name} holds a character that is not printable.")

    def limit(self, own: int | None) -> int:
        """Return the bytes that one item may have, by a connection's own limit and the installation's."""
        return min(own or self.max_bytes, self.max_bytes)


def too_large(size: int, limit: int) -> ItemError:
    """Return the error of an item of so many bytes."""
    return ItemError("too_large", f"The file has {size / 2**20:.1f} MB; the most is {limit / 2**20:.1f} MB.")


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "config"
