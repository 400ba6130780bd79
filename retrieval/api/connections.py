"""GET /api/v1/connections, and uploads and syncs for admins."""

from typing import Final

from django.http import HttpRequest
from ninja import File, Router, Status, UploadedFile

from corecube.access import scope_for
from corecube.api import principal_of
from corecube.connectors.upload import check_upload
from retrieval.api import schemas, shape
from retrieval.api.connection_schemas import ConnectionsOut
from retrieval.api.managed import managed_connection
from retrieval.ingest.services import queue_sync, store_upload
from retrieval.models import Sync, SyncProblem

router = Router(tags=["connections"])

_MAX_PROBLEMS: Final = 100


@router.get("/connections", response={200: ConnectionsOut, **schemas.REFUSALS}, summary="List connections")
def list_connections(request: HttpRequest) -> ConnectionsOut:
    """Return the connections that the principal may see, by name."""
    scope = scope_for(principal_of(request))
    return ConnectionsOut(connections=[shape.source(it.connection) for it in scope.included])


@router.post(
    "/connections/{slug}/uploads", response={202: schemas.UploadsOut, **schemas.REFUSALS}, summary="Upload files"
)
def upload_files(request: HttpRequest, slug: str, files: File[list[UploadedFile]]) -> Status[schemas.UploadsOut]:
    """Keep files with an upload connection, all or none, and queue the sync that takes them in. For admins."""
    principal = principal_of(request)
    connection = managed_connection(principal, slug)
    for file in files:
        check_upload(_name(file), file.size or 0)
    for file in files:
        store_upload(connection, name=_name(file), content=file, actor=principal.user)
    sync = queue_sync(connection, actor=principal.user)
    return Status(202, schemas.UploadsOut(files=[_name(file) for file in files], sync=_sync(sync)))


@router.get("/connections/{slug}/sync", response={200: schemas.SyncStateOut, **schemas.REFUSALS}, summary="Latest sync")
def latest_sync(request: HttpRequest, slug: str) -> schemas.SyncStateOut:
    """Return the state of a connection's latest sync, and what it could not take in. For admins."""
    connection = managed_connection(principal_of(request), slug)
    sync = Sync.objects.filter(connection=connection).first()
    problems = SyncProblem.objects.filter(connection=connection)
    return schemas.SyncStateOut(
        connection=connection.slug,
        sync=_sync(sync) if sync else None,
        problem_count=problems.count(),
        problems=[schemas.ProblemOut.of(problem) for problem in problems[:_MAX_PROBLEMS]],
    )


@router.post("/connections/{slug}/sync", response={202: schemas.SyncOut, **schemas.REFUSALS}, summary="Sync now")
def start_sync(request: HttpRequest, slug: str) -> Status[schemas.SyncOut]:
    """Queue a sync of a connection; one that waits already is returned as it is. For admins."""
    principal = principal_of(request)
    connection = managed_connection(principal, slug)
    return Status(202, _sync(queue_sync(connection, actor=principal.user)))


def _name(file: UploadedFile) -> str:
    return file.name or ""


def _sync(sync: Sync) -> schemas.SyncOut:
    return schemas.SyncOut.model_validate(sync)
