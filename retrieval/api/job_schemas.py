"""What the API says of jobs."""

from datetime import datetime
from typing import Self
from uuid import UUID

from pydantic import BaseModel, Field

from retrieval.api.request_body import RequestBody
from retrieval.api.schemas import ProblemOut
from retrieval.ingest.jobs import JobState


class JobOut(BaseModel):
    """A sync, and where it stands."""

    id: UUID
    connection: str = Field(description="The connection's slug.")
    kind: str = Field(
        description="full, changes (only what changed), retry (only what failed) or dry_run (stores nothing)."
    )
    state: str = Field(description="queued, running, stalled, done, failed, stopped, cancelling or cancelled.")
    label: str = Field(description='The state in words: "done with 4 problems".')
    stage: str = Field(description="While it runs: listing, working or settling.")
    items: dict[str, int] = Field(description="While it runs: items by queued, parsing, embedding, storing, failed.")
    chunks_in_hand: int = Field(description="While it runs: chunks of the items that are embedded or stored.")
    chunks_embedded: int = Field(description="Of these, how many have their vectors.")
    seconds_left: float | None = Field(description="By its pace of the last minutes; null where nothing tells yet.")
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    seen: int
    added: int
    changed: int
    unchanged: int
    failed: int = Field(description="Items that it could not take in: its problems.")
    deleted: int
    chunks: int
    documents_per_second: float
    chunks_per_second: float
    retryable: int = Field(description="Failed items for which trying again can help.")
    waits_for: str = Field(
        description="While it is queued: same_connection, worker, no_worker (none has looked lately) or disabled."
    )
    message: str

    @classmethod
    def of(cls, job: JobState) -> Self:
        """Return a job as the API shows it."""
        sync = job.sync
        same = ("id", "kind", "stage", "queued_at", "started_at", "finished_at", "message", "chunks")
        counts = ("seen", "added", "changed", "unchanged", "failed", "deleted")
        return cls(
            connection=sync.connection.slug,
            state=job.state,
            label=job.label,
            items=dict(job.items),
            chunks_in_hand=job.chunks_in_hand,
            chunks_embedded=job.chunks_embedded,
            seconds_left=None if job.seconds_left is None else round(job.seconds_left, 1),
            documents_per_second=round(job.documents_per_second, 2),
            chunks_per_second=round(job.chunks_per_second, 2),
            retryable=job.retryable,
            waits_for=job.wait.reason.value if job.wait else "",
            **{name: getattr(sync, name) for name in (*same, *counts)},
        )


class RetryIn(RequestBody):
    """What of a job to try again."""

    items: list[str] = Field(default=[], max_length=1000, description="Names of failed items; empty tries all.")


class JobsOut(BaseModel):
    """The latest jobs, newest first."""

    jobs: list[JobOut]


class JobDetailOut(JobOut):
    """A job with what it could not take in so far."""

    errors: list[ProblemOut] = Field(description="The first hundred.")
