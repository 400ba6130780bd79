"""What the API reads and says of a connection's settings."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from corecube.connections import secrets_with
from corecube.connectors.types import Capability
from corecube.errors import ConfigError
from corecube.models import Connection
from corecube.scope import Sensitivity, TrustLevel
from retrieval.api.request_body import RequestBody
from retrieval.api.schemas import Source

_SECRETS: Final = "Write-only, by name; they are kept encrypted. An empty one is removed; null changes nothing."


def _without_nulls(secrets: object) -> object:
    if not isinstance(secrets, dict):
        return secrets
    return {name: value for name, value in secrets.items() if value is not None}


Secrets = Annotated[
    dict[str, Annotated[str, Field(max_length=4000)]],
    Field(description=_SECRETS, repr=False),
    BeforeValidator(_without_nulls),
]
SensitivityName = Literal["public", "internal", "confidential", "restricted"]
TrustName = Literal["volatile", "reference", "authoritative"]


class ConnectionChange(RequestBody):
    """Settings to change; what is not named stays. Of `config` each field by itself, null for its default."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: str = Field(default="", max_length=120)
    slug: str = Field(default="", max_length=50)
    config: dict[str, Any] = Field(default_factory=dict, description="What the kind's connector needs.")
    secrets: Secrets = Field(default_factory=dict)
    compartment: str = Field(default="", max_length=50, description="The compartment's slug.")
    sensitivity: SensitivityName = "internal"
    trust: TrustName = "reference"
    source_type: str = Field(default="", max_length=20)
    half_life_days: float = 180.0
    freshness_basis: Literal["synced", "modified"] = "synced"
    language: str = Field(default="", max_length=20)
    chunk_profile: str = Field(default="default", max_length=20)
    enrichment: str = Field(
        default="",
        max_length=20,
        description="What a model adds; for a new connection that does not say it, questions where one may write them.",
    )
    sync_every_minutes: int | None = Field(default=None, description="Null: it is synced by hand only.")
    enabled: bool = True
    save_anyway: bool = Field(default=False, description="Stores it although its source cannot be read as it is.")


class ConnectionIn(ConnectionChange):
    """A new connection. Without a slug it gets one from its name."""

    name: str = Field(min_length=1, max_length=120)
    kind: str = Field(max_length=20, description="folder, upload, git, web, s3, confluence or push.")
    compartment: str = Field(min_length=1, max_length=50, description="The compartment's slug.")


class CheckIn(RequestBody):
    """A source to be tried, without anything being stored."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    kind: str = Field(max_length=20)
    config: dict[str, Any] = Field(default_factory=dict)
    secrets: Secrets = Field(default_factory=dict)


class StoredCheckIn(RequestBody):
    """Changes to try a stored connection with; none tries it as it is."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    config: dict[str, Any] = Field(default_factory=dict)
    secrets: Secrets = Field(default_factory=dict)


class CapabilityOut(BaseModel):
    """One thing that a source must allow."""

    name: str = Field(description="reach, authenticate, list or read.")
    ok: bool
    message: str


class CheckOut(BaseModel):
    """What a source allows, in the order in which it is needed, up to the first thing that is missing."""

    ok: bool
    capabilities: list[CapabilityOut]

    @classmethod
    def of(cls, capabilities: tuple[Capability, ...]) -> Self:
        """Return a check as the API shows it."""
        shown = [CapabilityOut(name=it.name, ok=it.ok, message=it.message) for it in capabilities]
        return cls(ok=all(it.ok for it in capabilities), capabilities=shown)


class ConnectionDetail(BaseModel):
    """A connection with its settings. Of its secrets only the length is told."""

    connection: str = Field(description="The slug.")
    name: str
    kind: str
    config: dict[str, Any]
    secrets: dict[str, int] = Field(description="Characters of each secret that is set.")
    compartment: str
    sensitivity: str
    trust: str
    source_type: str
    half_life_days: float
    freshness_basis: str
    language: str
    chunk_profile: str
    enrichment: str
    sync_every_minutes: int | None
    enabled: bool
    last_synced_at: datetime | None
    next_sync_at: datetime | None

    @classmethod
    def of(cls, connection: Connection) -> Self:
        """Return a connection as the API shows it."""
        same = (
            *("name", "kind", "config", "source_type", "half_life_days", "freshness_basis", "language"),
            *("chunk_profile", "enrichment", "sync_every_minutes", "enabled", "last_synced_at", "next_sync_at"),
        )
        return cls(
            connection=connection.slug,
            secrets=_lengths(connection),
            compartment=connection.compartment.slug,
            sensitivity=Sensitivity(connection.sensitivity).name.lower(),
            trust=TrustLevel(connection.trust).name.lower(),
            **{name: getattr(connection, name) for name in same},
        )


class ConnectionsOut(BaseModel):
    """The connections that the principal may see."""

    connections: list[Source]


class DeletedOut(BaseModel):
    """What went with a connection."""

    documents: int
    chunks: int


def _lengths(connection: Connection) -> dict[str, int]:
    """Return the length of each secret; none where they cannot be opened any more."""
    try:
        return {name: len(value) for name, value in secrets_with(connection, {}).items()}
    except ConfigError:
        return {}
