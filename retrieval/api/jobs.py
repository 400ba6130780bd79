"""/api/v1/jobs: list, read, cancel and retry syncs, for admins."""

from datetime import datetime
from typing import Annotated, Final, Self
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from ninja import Query, Router, Status
from pydantic import BaseModel, ConfigDict, Field

from corecube.access import Principal
from corecube.api import principal_of
from corecube.database import first_or
from corecube.errors import NotFoundError
from retrieval.api.managed import managed_connection, managed_connections, require_admin
from retrieval.api.schemas import REFUSALS, RequestBody, filled
from retrieval.ingest.jobs import JobState, job_states
from retrieval.ingest.problems import PERMANENT, advice
from retrieval.ingest.services import cancel_sync, queue_sync, retry_failed
from retrieval.models import Sync, SyncItem, SyncProblem

router = Router(tags=["jobs"])
_MAX_ERRORS: Final = 100


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


class JobOut(SyncFigures):
    """A sync and its progress."""

    connection: str = Field(description="The connection's slug.")
    state: str = Field(description="queued, running, stalled, done, failed, stopped, cancelling or cancelled.")
    stage: str = Field(description="While it runs: listing, working or settling.")
    items: dict[str, int] = Field(description="While it runs: items by queued, parsing, embedding, storing, failed.")
    chunks_in_hand: int = Field(description="While it runs: chunks of the items that are being embedded or stored.")
    chunks_embedded: int = Field(description="How many of these have vectors.")
    seconds_left: float | None = Field(description="Estimate from the speed of the last minutes; null if unknown.")
    documents_per_second: float
    chunks_per_second: float
    retryable: int = Field(description="Failed items that a retry can fix.")
    waits_for: str = Field(
        description="While it is queued: same_connection, worker, no_worker (none was active recently) or disabled."
    )

    @classmethod
    def of(cls, job: JobState) -> Self:
        """Return the response for a job."""
        sync = job.sync
        same = ("state", "label", "chunks_in_hand", "chunks_embedded", "retryable")
        return cls(
            **SyncFigures.model_validate(sync).model_dump(exclude={"label"}),
            **{name: getattr(job, name) for name in same},
            connection=sync.connection.slug,
            stage=sync.stage,
            items=dict(job.items),
            seconds_left=None if job.seconds_left is None else round(job.seconds_left, 1),
            documents_per_second=round(job.documents_per_second, 2),
            chunks_per_second=round(job.chunks_per_second, 2),
            waits_for=job.wait.reason.value if job.wait else "",
        )


class RetryIn(RequestBody):
    """The failed items to retry."""

    items: list[str] = Field(default=[], max_length=1000, description="Names of failed items; empty: all.")


class JobsOut(BaseModel):
    """The latest jobs, newest first."""

    jobs: list[JobOut]


class JobDetailOut(JobOut):
    """A job with the items that could not be indexed so far."""

    errors: list[ProblemOut] = Field(description="The first 100.")


@router.get("/jobs", response={200: JobsOut, **REFUSALS}, summary="List jobs")
def list_jobs(request: HttpRequest, connection: str = "", limit: Annotated[int, Query(ge=1, le=500)] = 50) -> JobsOut:
    """Return the latest syncs of one connection or of all, newest first. For admins."""
    syncs = _managed_syncs(principal_of(request))
    if connection:
        syncs = syncs.filter(connection=managed_connection(principal_of(request), connection))
    return JobsOut(jobs=[JobOut.of(job) for job in job_states(syncs[:limit], timezone.now())])


@router.get("/jobs/{uuid:job_id}", response={200: JobDetailOut, **REFUSALS}, summary="Read a job")
def read_job(request: HttpRequest, job_id: UUID) -> JobDetailOut:
    """Return the progress of a sync and the items that could not be indexed. For admins."""
    sync = _managed_sync(request, job_id)
    failed = sync.items.filter(state=SyncItem.State.FAILED)[:_MAX_ERRORS]
    return JobDetailOut(**_job(sync).model_dump(), errors=[ProblemOut.of(item) for item in failed])


@router.post("/jobs/{uuid:job_id}/cancel", response={200: JobOut, **REFUSALS}, summary="Cancel a job")
def cancel_job(request: HttpRequest, job_id: UUID) -> JobOut:
    """Cancel a queued or running sync; documents stored by then stay. For admins."""
    return _job(cancel_sync(_managed_sync(request, job_id), actor=principal_of(request).user))


@router.post("/jobs/{uuid:job_id}/retry", response={202: JobOut, **REFUSALS}, summary="Retry failed items")
def retry_job(request: HttpRequest, job_id: UUID, body: RetryIn | None = None) -> Status[JobOut]:
    """Queue a sync of all or some of the items that failed in an earlier one. For admins."""
    items = body.items or None if body else None
    sync = retry_failed(_managed_sync(request, job_id), actor=principal_of(request).user, external_ids=items)
    return Status(202, _job(sync))


@router.post("/connections/{slug}/dry-run", response={202: JobOut, **REFUSALS}, summary="Start a dry run")
def dry_run(request: HttpRequest, slug: str) -> Status[JobOut]:
    """Queue a sync that only counts the items that it would add, change and delete. For admins."""
    principal = principal_of(request)
    connection = managed_connection(principal, slug)
    return Status(202, _job(queue_sync(connection, actor=principal.user, dry_run=True)))


def _managed_syncs(principal: Principal) -> QuerySet[Sync]:
    connections = managed_connections(require_admin(principal))
    return Sync.objects.filter(connection__in=connections).select_related("connection")


def _managed_sync(request: HttpRequest, job_id: UUID) -> Sync:
    missing = NotFoundError("You cannot manage a job with that id.")
    return first_or(missing, _managed_syncs(principal_of(request)).filter(pk=job_id))


def _job(sync: Sync) -> JobOut:
    return JobOut.of(job_states([sync], timezone.now())[0])
