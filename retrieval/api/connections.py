"""Connections: read, create, check, change and delete them; uploads and syncs. All but the list are for admins."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self

from django.http import HttpRequest
from django.utils.text import slugify
from ninja import File, Router, Status, UploadedFile
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from corecube import connections as services
from corecube.access import Principal, scope_for
from corecube.api import principal_of
from corecube.connectors.types import Capability
from corecube.connectors.upload import check_upload
from corecube.database import first_or
from corecube.errors import ConfigError, NotPermittedError
from corecube.models import Compartment, Connection
from corecube.sanitise import storable
from corecube.scope import Sensitivity, TrustLevel
from retrieval.api import shape
from retrieval.api.jobs import ProblemOut, SyncOut
from retrieval.api.managed import managed_connection, may_manage, require_admin, require_own_source
from retrieval.api.schemas import REFUSALS, Source, StrictBody, filled, links
from retrieval.ingest.enrich.wants import default_enrichment
from retrieval.ingest.services import delete_connection, queue_sync, store_upload
from retrieval.models import Sync, SyncProblem

router = Router(tags=["connections"])
_OF_A_CONNECTION: Final = (
    *("read_connection", "patch_connection", "remove_connection", "check_stored"),
    *("start_sync", "latest_sync", "upload_files"),
)

_MAX_PROBLEMS: Final = 100
SensitivityName = Literal["public", "internal", "confidential", "restricted"]
TrustName = Literal["volatile", "reference", "authoritative"]


Secrets = Annotated[
    dict[str, Annotated[str, Field(max_length=4000)]],
    Field(description="Write-only, by name, stored encrypted. An empty one is removed; null: no change.", repr=False),
    BeforeValidator(
        lambda given: {name: it for name, it in given.items() if it is not None} if isinstance(given, dict) else given
    ),
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
            lengths = {name: len(value) for name, value in services.secrets_with(connection, {}).items()}
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


@router.get("/connections", response={200: ConnectionsOut, **REFUSALS}, summary="List connections")
def list_connections(request: HttpRequest) -> ConnectionsOut:
    """Return the connections that the principal may see, by name."""
    scope = scope_for(principal_of(request))
    listed = (it.connection for it in scope.included if not it.connection.is_attached)
    return ConnectionsOut(connections=[shape.source(it) for it in listed])


@router.post("/connections/{slug}/uploads", response={202: UploadsOut, **REFUSALS}, summary="Upload files")
def upload_files(request: HttpRequest, slug: str, files: File[list[UploadedFile]]) -> Status[UploadsOut]:
    """Store files in an upload connection, all or none, and queue a sync. For admins."""
    principal = principal_of(request)
    connection = managed_connection(principal, slug)
    named = [(file.name or "", file) for file in files]
    for name, file in named:
        check_upload(name, file.size or 0)
    for name, file in named:
        store_upload(connection, name=name, content=file, actor=principal.user)
    sync = queue_sync(connection, actor=principal.user)
    return Status(202, UploadsOut(files=[name for name, _ in named], sync=SyncOut.model_validate(sync)))


@router.get("/connections/{slug}/sync", response={200: SyncStateOut, **REFUSALS}, summary="Read the latest sync")
def latest_sync(request: HttpRequest, slug: str) -> SyncStateOut:
    """Return the state of a connection's latest sync, and the items that could not be indexed. For admins."""
    connection = managed_connection(principal_of(request), slug)
    sync = Sync.objects.filter(connection=connection).first()
    problems = SyncProblem.objects.filter(connection=connection)
    return SyncStateOut(
        connection=connection.slug,
        sync=SyncOut.model_validate(sync) if sync else None,
        problem_count=problems.count(),
        problems=[ProblemOut.of(problem) for problem in problems[:_MAX_PROBLEMS]],
    )


@router.post("/connections/{slug}/sync", response={202: SyncOut, **REFUSALS}, summary="Start a sync")
def start_sync(request: HttpRequest, slug: str) -> Status[SyncOut]:
    """Queue a sync of a connection, or return the one that is queued already. For admins."""
    principal = principal_of(request)
    connection = managed_connection(principal, slug)
    return Status(202, SyncOut.model_validate(queue_sync(connection, actor=principal.user)))


#: Settings that are stored as sent.
_SAME = (
    *("name", "slug", "source_type", "half_life_days", "freshness_basis", "language", "chunk_profile"),
    *("enrichment", "sync_every_minutes", "enabled"),
)


@router.post(
    "/connections",
    response={201: ConnectionDetail, **REFUSALS},
    openapi_extra={"responses": {201: links(__name__, "slug", "connection", *_OF_A_CONNECTION)}},
    summary="Add a connection",
)
def add_connection(request: HttpRequest, body: ConnectionIn) -> Status[ConnectionDetail]:
    """Check the source and add the connection; this starts no sync. For admins."""
    principal = require_admin(principal_of(request))
    connection = Connection(kind=body.kind, slug=slugify(body.name)[:50].strip("-_"))
    _apply(connection, body)
    if "enrichment" not in body.model_fields_set:
        connection.enrichment = default_enrichment(connection)
    _require_allowed(principal, connection, body)
    if not body.save_anyway:
        services.require_checked(connection, body.secrets)
    return Status(201, ConnectionDetail.of(services.create_connection(connection, body.secrets, actor=principal.user)))


@router.post("/connections/check", response={200: CheckOut, **REFUSALS}, summary="Check a source")
def check_new(request: HttpRequest, body: CheckIn) -> CheckOut:
    """Check a source and store nothing. For admins."""
    connection = Connection(kind=body.kind, slug="unsaved", config=body.config)
    require_own_source(require_admin(principal_of(request)), connection, body.secrets)
    return CheckOut.of(services.checked(connection, body.secrets))


@router.get("/connections/{slug}", response={200: ConnectionDetail, **REFUSALS}, summary="Read a connection")
def read_connection(request: HttpRequest, slug: str) -> ConnectionDetail:
    """Return a connection with its settings, without its secrets. For admins."""
    return ConnectionDetail.of(managed_connection(principal_of(request), slug))


@router.patch("/connections/{slug}", response={200: ConnectionDetail, **REFUSALS}, summary="Change a connection")
def patch_connection(request: HttpRequest, slug: str, body: ConnectionChange) -> ConnectionDetail:
    """Change settings. Changes of the source are checked first. For admins."""
    principal = principal_of(request)
    connection = _changed(principal, slug, body)
    if {"config", "secrets"} & body.model_fields_set and not body.save_anyway:
        services.require_checked(connection, body.secrets)
        # The check takes time: reload, so that changes made in the meantime stay.
        connection = _changed(principal, slug, body)
    services.change_connection(connection, body.secrets, actor=principal.user)
    return ConnectionDetail.of(connection)


@router.delete("/connections/{slug}", response={200: DeletedOut, **REFUSALS}, summary="Delete a connection")
def remove_connection(request: HttpRequest, slug: str) -> DeletedOut:
    """Delete a connection with its documents, chunks, syncs and files. For admins."""
    principal = principal_of(request)
    documents, chunks = delete_connection(managed_connection(principal, slug), actor=principal.user)
    return DeletedOut(documents=documents, chunks=chunks)


@router.post("/connections/{slug}/check", response={200: CheckOut, **REFUSALS}, summary="Check a connection")
def check_stored(request: HttpRequest, slug: str, body: StoredCheckIn) -> CheckOut:
    """Check a connection's source, with unsaved changes if there are any, and store nothing. For admins."""
    principal = principal_of(request)
    connection = managed_connection(principal, slug)
    before, connection.config = connection.config, _merged(connection.config, body.config)
    require_own_source(principal, connection, body.secrets, before=before)
    return CheckOut.of(services.checked(connection, body.secrets))


def _changed(principal: Principal, slug: str, body: ConnectionChange) -> Connection:
    """Return the changed connection, not saved; raise NotPermittedError if the principal may not make the changes."""
    connection = managed_connection(principal, slug)
    before = connection.config
    _apply(connection, body)
    _require_allowed(principal, connection, body, before=before)
    return connection


def _apply(connection: Connection, body: ConnectionChange) -> None:
    """Set the fields that were sent; raise InvalidConnectionError for an unknown compartment."""
    sent = body.model_fields_set
    for name in _SAME:
        if name in sent:
            value = getattr(body, name)
            setattr(connection, name, storable(value) if isinstance(value, str) else value)
    if "config" in sent:
        connection.config = _merged(connection.config, body.config)
    if "sensitivity" in sent:
        connection.sensitivity = Sensitivity[body.sensitivity.upper()]
    if "trust" in sent:
        connection.trust = TrustLevel[body.trust.upper()]
    if "compartment" in sent:
        unknown = services.InvalidConnectionError({"compartment": "No compartment has this slug."})
        connection.compartment = first_or(unknown, Compartment.objects.listed().filter(slug=storable(body.compartment)))


def _merged(config: Any, changes: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 -- a JSON field holds anything
    stored = config if isinstance(config, dict) else {}
    return {name: value for name, value in {**stored, **changes}.items() if value is not None}


def _require_allowed(principal: Principal, connection: Connection, body: ConnectionChange, before: Any = None) -> None:  # noqa: ANN401
    if not may_manage(principal, connection):
        raise NotPermittedError("This API key may not manage connections of that compartment and sensitivity.")
    require_own_source(principal, connection, body.secrets, before=before)
