"""GET /api/v1/jobs and what can be done about one, for admins."""

from typing import Annotated, Final
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from ninja import Query, Router, Status

from corecube.access import Principal
from corecube.api import principal_of
from corecube.errors import NotFoundError, NotPermittedError
from retrieval.api import schemas
from retrieval.api.job_schemas import JobDetailOut, JobOut, JobsOut, RetryIn
from retrieval.api.managed import managed_connection, managed_connections
from retrieval.ingest.jobs import job_states
from retrieval.ingest.services import cancel_sync, queue_sync, retry_failed
from retrieval.models import Sync, SyncItem

router = Router(tags=["jobs"])

_MAX_ERRORS: Final = 100


@router.get("/jobs", response={200: JobsOut, **schemas.REFUSALS}, summary="List jobs")
def list_jobs(request: HttpRequest, connection: str = "", limit: Annotated[int, Query(ge=1, le=500)] = 50) -> JobsOut:
    """Return the latest syncs, of one connection or of all, newest first. For admins."""
    syncs = _managed_syncs(principal_of(request))
    if connection:
        syncs = syncs.filter(connection=managed_connection(principal_of(request), connection))
    return JobsOut(jobs=[JobOut.of(job) for job in job_states(syncs[:limit], timezone.now())])


@router.get("/jobs/{uuid:job_id}", response={200: JobDetailOut, **schemas.REFUSALS}, summary="Read a job")
def read_job(request: HttpRequest, job_id: UUID) -> JobDetailOut:
    """Return where a sync stands and what it could not take in. For admins."""
    sync = _managed_sync(request, job_id)
    failed = sync.items.filter(state=SyncItem.State.FAILED)[:_MAX_ERRORS]
    errors = [schemas.ProblemOut.of(item) for item in failed]
    return JobDetailOut(**_job(sync).model_dump(), errors=errors)


@router.post("/jobs/{uuid:job_id}/cancel", response={200: JobOut, **schemas.REFUSALS}, summary="Cancel a job")
def cancel_job(request: HttpRequest, job_id: UUID) -> JobOut:
    """End a sync that waits or runs; what is stored by then stays. For admins."""
    return _job(cancel_sync(_managed_sync(request, job_id), actor=principal_of(request).user))


@router.post("/jobs/{uuid:job_id}/retry", response={202: JobOut, **schemas.REFUSALS}, summary="Try again what failed")
def retry_job(request: HttpRequest, job_id: UUID, body: RetryIn | None = None) -> Status[JobOut]:
    """Queue a sync of what failed in an earlier one, or of some of that, and of nothing else. For admins."""
    items = body.items or None if body else None
    sync = retry_failed(_managed_sync(request, job_id), actor=principal_of(request).user, external_ids=items)
    return Status(202, _job(sync))


@router.post("/connections/{slug}/dry-run", response={202: JobOut, **schemas.REFUSALS}, summary="Dry run")
def dry_run(request: HttpRequest, slug: str) -> Status[JobOut]:
    """Queue a sync that only counts what it would add, change and delete. For admins."""
    principal = principal_of(request)
    connection = managed_connection(principal, slug)
    return Status(202, _job(queue_sync(connection, actor=principal.user, dry_run=True)))


def _managed_syncs(principal: Principal) -> QuerySet[Sync]:
    """Return the syncs of the connections that the principal may manage; raise NotPermittedError for nobody's."""
    if not principal.is_admin:
        raise NotPermittedError("Only an admin may do this.")
    return Sync.objects.filter(connection__in=managed_connections(principal)).select_related("connection")


def _managed_sync(request: HttpRequest, job_id: UUID) -> Sync:
    sync = _managed_syncs(principal_of(request)).filter(pk=job_id).first()
    if sync is None:
        raise NotFoundError("No job with that id can be managed by you.")
    return sync


def _job(sync: Sync) -> JobOut:
    return JobOut.of(job_states([sync], timezone.now())[0])
