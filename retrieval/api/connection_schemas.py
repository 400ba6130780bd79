"""Request and response bodies about connections and their syncs."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from corecube.connections import secrets_with
from corecube.connectors.types import Capability
from corecube.errors import ConfigError
from corecube.models import Connection
from corecube.scope import Sensitivity, TrustLevel
from retrieval.api.schemas import Source, StrictBody, filled
from retrieval.ingest.problems import PERMANENT, advice
from retrieval.models import SyncItem, SyncProblem

SensitivityName = Literal["public", "internal", "confidential", "restricted"]
TrustName = Literal["volatile", "reference", "authoritative"]


def _without_nulls(secrets: object) -> object:
    if not isinstance(secrets, dict):
        return secrets
    return {name: value for name, value in secrets.items() if value is not None}


Secrets = Annotated[
    dict[str, Annotated[str, Field(max_length=4000)]],
    Field(description="Write-only, by name, stored encrypted. An empty one is removed; null: no change.", repr=False),
    BeforeValidator(_without_nulls),
]


class ConnectionChange(StrictBody):
    """Settings to change; omitted ones stay. Fields of `config` are changed one by one; null restores the default."""

    model_config = ConfigDict(hide_input_in_errors=True)

    name: str = Field(default="", max_length=120)
    slug: str = Field(default="", max_length=50)
    config: dict[str, Any] = Field(default_factory=dict, description="Settings of the connector.")
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
        description="What a model adds to chunks. New connections get questions by default if a model may write them.",
    )
    sync_every_minutes: int | None = Field(default=None, description="Null: manual syncs only.")
    enabled: bool = True
    save_anyway: bool = Field(default=False, description="Saves the connection even if the check of its source fails.")


class ConnectionIn(ConnectionChange):
    """A new connection. An empty slug is generated from the name."""

    name: str = Field(min_length=1, max_length=120)
    kind: str = Field(max_length=20, description="folder, upload, git, web, s3, confluence or push.")
    compartment: str = Field(min_length=1, max_length=50, description="The compartment's slug.")


class StoredCheckIn(StrictBody):
    """Unsaved changes to include in the check of a stored connection."""

    model_config = ConfigDict(hide_input_in_errors=True)

    config: dict[str, Any] = Field(default_factory=dict)
    secrets: Secrets = Field(default_factory=dict)


class CheckIn(StoredCheckIn):
    """A source to check. Nothing is stored."""

    kind: str = Field(max_length=20)


class CapabilityOut(BaseModel):
    """A capability that a source needs."""

    name: str = Field(description="reach, authenticate, list or read.")
    ok: bool
    message: str


class CheckOut(BaseModel):
    """The capabilities of a source, in the order of the check, up to the first that fails."""

    ok: bool
    capabilities: list[CapabilityOut]

    @classmethod
    def of(cls, capabilities: tuple[Capability, ...]) -> Self:
        """Return the response for a check."""
        shown = [CapabilityOut.model_validate(it, from_attributes=True) for it in capabilities]
        return cls(ok=all(it.ok for it in capabilities), capabilities=shown)


class ConnectionDetail(BaseModel):
    """A connection with its settings. Only the lengths of its secrets are included."""

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
        """Return the response for a connection; without secrets if they can no longer be decrypted."""
        try:
            lengths = {name: len(value) for name, value in secrets_with(connection, {}).items()}
        except ConfigError:
            lengths = {}
        return filled(
            cls,
            connection,
            connection=connection.slug,
            secrets=lengths,
            compartment=connection.compartment.slug,
            sensitivity=Sensitivity(connection.sensitivity).name.lower(),
            trust=TrustLevel(connection.trust).name.lower(),
        )


class ConnectionsOut(BaseModel):
    """The connections that the principal may see."""

    connections: list[Source]


class DeletedOut(BaseModel):
    """What was deleted with a connection."""

    documents: int
    chunks: int


class ProblemOut(BaseModel):
    """An item that could not be indexed."""

    item: str
    reason: str
    message: str
    advice: str = Field(description="How to fix it; empty if there is no general advice.")
    retryable: bool = Field(description="Whether a retry can succeed without a change of the source.")

    @classmethod
    def of(cls, problem: SyncItem | SyncProblem) -> Self:
        """Return the response for a problem."""
        return filled(
            cls,
            problem,
            item=problem.external_id,
            advice=advice(problem.reason),
            retryable=problem.reason not in PERMANENT,
        )


class SyncFigures(BaseModel):
    """What every response about a sync has."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    label: str = Field(description='The status in words: "done with 4 problems".')
    kind: str = Field(
        description="full, changes (only what changed), retry (only what failed) or dry_run (stores nothing)."
    )
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    seen: int
    added: int
    changed: int
    unchanged: int
    failed: int = Field(description="Items that could not be indexed.")
    deleted: int
    chunks: int
    message: str


class SyncOut(SyncFigures):
    """A sync of a connection."""

    status: str


class SyncStateOut(BaseModel):
    """A connection's latest sync and the items that could not be indexed."""

    connection: str
    sync: SyncOut | None = Field(description="None before the first sync.")
    problem_count: int = Field(description="Items that are not indexed, including those of a running sync so far.")
    problems: list[ProblemOut] = Field(description="The first 100.")


class UploadsOut(BaseModel):
    """Uploaded files, and the sync that indexes them."""

    files: list[str]
    sync: SyncOut
