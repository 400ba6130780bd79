"""Connections: read, create, check, change and delete them; uploads and syncs. All but the list are for admins."""

from typing import Any, Final

from django.http import HttpRequest
from django.utils.text import slugify
from ninja import File, Router, Status, UploadedFile

from corecube.access import Principal, scope_for
from corecube.api import principal_of
from corecube.connections import InvalidConnectionError, change_connection, checked, create_connection, require_checked
from corecube.connectors.upload import check_upload
from corecube.errors import NotPermittedError
from corecube.models import Compartment, Connection
from corecube.sanitise import storable
from corecube.scope import Sensitivity, TrustLevel
from retrieval.api import shape
from retrieval.api.connection_schemas import (
    CheckIn,
    CheckOut,
    ConnectionChange,
    ConnectionDetail,
    ConnectionIn,
    ConnectionsOut,
    DeletedOut,
    ProblemOut,
    StoredCheckIn,
    SyncOut,
    SyncStateOut,
    UploadsOut,
)
from retrieval.api.managed import managed_connection, may_manage, require_admin, require_own_source
from retrieval.api.schemas import REFUSALS
from retrieval.ingest.enrich.wants import default_enrichment
from retrieval.ingest.services import delete_connection, queue_sync, store_upload
from retrieval.models import Sync, SyncProblem

router = Router(tags=["connections"])

_MAX_PROBLEMS: Final = 100


@router.get("/connections", response={200: ConnectionsOut, **REFUSALS}, summary="List connections")
def list_connections(request: HttpRequest) -> ConnectionsOut:
    """Return the connections that the principal may see, by name."""
    scope = scope_for(principal_of(request))
    return ConnectionsOut(connections=[shape.source(it.connection) for it in scope.included])


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


@router.post("/connections", response={201: ConnectionDetail, **REFUSALS}, summary="Add a connection")
def add_connection(request: HttpRequest, body: ConnectionIn) -> Status[ConnectionDetail]:
    """Check the source and add the connection; this starts no sync. For admins."""
    principal = require_admin(principal_of(request))
    connection = Connection(kind=body.kind, slug=slugify(body.name)[:50].strip("-_"))
    _apply(connection, body)
    if "enrichment" not in body.model_fields_set:
        connection.enrichment = default_enrichment(connection)
    _require_manageable(principal, connection)
    require_own_source(principal, connection, body.secrets)
    if not body.save_anyway:
        require_checked(connection, body.secrets)
    return Status(201, ConnectionDetail.of(create_connection(connection, body.secrets, actor=principal.user)))


@router.post("/connections/check", response={200: CheckOut, **REFUSALS}, summary="Check a source")
def check_new(request: HttpRequest, body: CheckIn) -> CheckOut:
    """Check a source and store nothing. For admins."""
    connection = Connection(kind=body.kind, slug="unsaved", config=body.config)
    require_own_source(require_admin(principal_of(request)), connection, body.secrets)
    return CheckOut.of(checked(connection, body.secrets))


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
        require_checked(connection, body.secrets)
        # The check takes time: reload, so that changes made in the meantime stay.
        connection = _changed(principal, slug, body)
    change_connection(connection, body.secrets, actor=principal.user)
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
    return CheckOut.of(checked(connection, body.secrets))


def _changed(principal: Principal, slug: str, body: ConnectionChange) -> Connection:
    """Return the changed connection, not saved; raise NotPermittedError if the principal may not make the changes."""
    connection = managed_connection(principal, slug)
    before = connection.config
    _apply(connection, body)
    _require_manageable(principal, connection)
    require_own_source(principal, connection, body.secrets, before=before)
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
        compartment = Compartment.objects.filter(slug=storable(body.compartment)).first()
        if compartment is None:
            raise InvalidConnectionError({"compartment": "No compartment has this slug."})
        connection.compartment = compartment


def _merged(config: Any, changes: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 -- a JSON field holds anything
    stored = config if isinstance(config, dict) else {}
    return {name: value for name, value in {**stored, **changes}.items() if value is not None}


def _require_manageable(principal: Principal, connection: Connection) -> None:
    if not may_manage(principal, connection):
        raise NotPermittedError("This API key may not manage connections of that compartment and sensitivity.")
