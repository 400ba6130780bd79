"""GET /api/v1/connections, and uploads and syncs for admins."""

from typing import Final

from django.http import HttpRequest
from ninja import File, Router, Status, UploadedFile

from corecube.access import scope_for
from corecube.api import principal_of
from corecube.connectors.upload import check_upload
from retrieval.api import shape
from retrieval.api.connection_schemas import ConnectionsOut, ProblemOut, SyncOut, SyncStateOut, UploadsOut
from retrieval.api.managed import managed_connection
from retrieval.api.schemas import REFUSALS
from retrieval.ingest.services import queue_sync, store_upload
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


@router.get("/connections/{slug}/sync", response={200: SyncStateOut, **REFUSALS}, summary="Latest sync")
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


@router.post("/connections/{slug}/sync", response={202: SyncOut, **REFUSALS}, summary="Sync now")
def start_sync(request: HttpRequest, slug: str) -> Status[SyncOut]:
    """Queue a sync of a connection, or return the one that is queued already. For admins."""
    principal = principal_of(request)
    connection = managed_connection(principal, slug)
    return Status(202, SyncOut.model_validate(queue_sync(connection, actor=principal.user)))
