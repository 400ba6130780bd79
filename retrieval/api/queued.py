"""Searches in the tier "async": asking for one, and fetching what came of it."""

from datetime import datetime
from uuid import UUID

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel, Field

from corecube.access import Principal, ScopeRequest
from corecube.api import principal_of
from retrieval.api import schemas, shape
from retrieval.models import QueuedSearch, SearchRecord
from retrieval.records.recent_outcome import recent_outcome
from retrieval.search.queued_searches import queue_search, queued_of
from retrieval.search.request import SearchRequest
from retrieval.tasks.queued_searches import search_soon

router = Router(tags=["search"])


class QueuedOut(BaseModel):
    """Where a queued search stands, and what came of it."""

    id: UUID
    status: str = Field(description="queued, running, done or failed.")
    url: str = Field(description="Where to look again.")
    created_at: datetime
    finished_at: datetime | None
    variants: list[str] = Field(description="Other ways to put the question that were searched for too.")
    code: str = Field(description="Why it failed, as a stable word; empty unless it did.")
    message: str
    result: schemas.SearchOut | None = Field(default=None, description="Once it is done, as it may be read now.")


@router.get("/searches/{uuid:search_id}", response={200: QueuedOut, **schemas.REFUSALS}, summary="Fetch a search")
def read_search(request: HttpRequest, search_id: UUID) -> QueuedOut:
    """Return where a queued search of one's own stands; once it is done, its hits, in the scope that one has now."""
    principal = principal_of(request)
    job = queued_of(search_id, principal)
    out = _out(request, job)
    record = SearchRecord.objects.filter(pk=job.record_id).first() if job.record_id else None
    if record is not None:
        outcome = recent_outcome(record, principal)
        out.result = shape.search_out(outcome, request.build_absolute_uri, None)
    return out


def queued(request: HttpRequest, principal: Principal, body: schemas.SearchIn) -> QueuedOut:
    """Queue the search that a request asks for, and return where to fetch it; raise as `queue_search` does."""
    job = queue_search(
        SearchRequest(
            text=body.query,
            preset=body.preset,
            mode=body.mode,
            top_k=body.top_k,
            narrowing=ScopeRequest(include=tuple(body.scope.include), exclude=tuple(body.scope.exclude)),
            overrides=body.overrides,
            draft=body.draft,
            surface=SearchRecord.Surface.API,
        ),
        principal=principal,
    )
    search_soon()
    return _out(request, job)


def _out(request: HttpRequest, job: QueuedSearch) -> QueuedOut:
    return QueuedOut(
        id=job.pk,
        status=job.status,
        url=request.build_absolute_uri(f"/api/v1/searches/{job.pk}"),
        created_at=job.at,
        finished_at=job.finished_at,
        variants=job.variants,
        code=job.code,
        message=job.message,
    )
