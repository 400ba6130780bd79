"""Searches: at once, or queued for a worker."""

from datetime import datetime
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import BaseModel, Field

from corecube.access import Principal, ScopeRequest
from corecube.api import principal_of
from retrieval.api import shape
from retrieval.api.managed import managed_connections
from retrieval.api.schemas import (
    CHANGE_REFUSALS,
    REFUSALS,
    ExcludedOut,
    Explanation,
    ScopeIn,
    SearchIn,
    SearchOut,
    filled,
)
from retrieval.models import QueuedSearch, SearchRecord
from retrieval.records.stored_outcome import recent_outcome
from retrieval.search.live import live_search
from retrieval.search.outcome import SearchOutcome
from retrieval.search.queued_searches import queue_search, queued_of
from retrieval.search.request import SearchRequest
from retrieval.tasks.queued_searches import wake_worker_on_commit

router = Router(tags=["search"])


class QueuedOut(BaseModel):
    """The state and the result of a queued search."""

    id: UUID
    status: str = Field(description="queued, running, done or failed.")
    url: str = Field(description="URL that returns the current state.")
    created_at: datetime
    finished_at: datetime | None
    variants: list[str] = Field(description="Query variants that were searched too.")
    code: str = Field(description="Error code; empty unless the search failed.")
    message: str
    result: SearchOut | None = Field(default=None, description="Once it is done, within your current access.")


@router.get("/searches/{uuid:search_id}", response={200: QueuedOut, **REFUSALS}, summary="Fetch a search")
def read_search(request: HttpRequest, search_id: UUID) -> QueuedOut:
    """Return the state of one of your queued searches, and its hits once it is done, within your current access."""
    principal = principal_of(request)
    job = queued_of(search_id, principal)
    out = _out(request, job)
    record = SearchRecord.objects.filter(pk=job.record_id).first() if job.record_id else None
    if record is not None:
        outcome = recent_outcome(record, principal)
        out.result = shape.search_out(outcome, request.build_absolute_uri, None)
    return out


def _queued(request: HttpRequest, principal: Principal, wanted: SearchRequest) -> QueuedOut:
    """Queue a search and return where to fetch its result; raise as `queue_search` does."""
    job = queue_search(wanted, principal=principal)
    wake_worker_on_commit()
    return _out(request, job)


def _out(request: HttpRequest, job: QueuedSearch) -> QueuedOut:
    url = request.build_absolute_uri(f"/api/v1/searches/{job.pk}")
    return filled(QueuedOut, job, url=url, created_at=job.at)


@router.post("/search", response={200: SearchOut, **CHANGE_REFUSALS}, exclude_unset=True, summary="Search")
def search_documents(request: HttpRequest, body: SearchIn) -> SearchOut:
    """Find the chunks that answer a query, among those that the key's user may see."""
    principal = principal_of(request)
    outcome = live_search(_wanted(body, principal), principal=principal, through_api=True)
    explain = explanation_for(principal, outcome) if body.explain else None
    found = shape.search_out(outcome, request.build_absolute_uri, explain)
    if body.group_by:
        found.groups = shape.groups_of(found.hits, request.build_absolute_uri)
    return found


@router.post("/searches", response={202: QueuedOut, **CHANGE_REFUSALS}, summary="Queue a search")
def queue_slow_search(request: HttpRequest, body: SearchIn) -> Status[QueuedOut]:
    """Queue a search of the preset helix for a worker, which may take longer.

    It also searches for query variants of a language model, and may order the hits by a reranking service. The result
    is fetched at the `url` of the response; it has no `explain` and no `groups`.
    """
    principal = principal_of(request)
    return Status(202, _queued(request, principal, _wanted(body, principal)))


def _wanted(body: SearchIn, principal: Principal) -> SearchRequest:
    return SearchRequest(
        text=body.query,
        preset=body.preset,
        mode=body.mode,
        top_k=body.top_k,
        narrowing=scope_request(body.scope),
        reveal_excluded=body.explain and principal.is_admin,
        overrides=body.overrides,
        draft=body.draft,
        surface=SearchRecord.Surface.API,
    )


def scope_request(scope: ScopeIn) -> ScopeRequest:
    """Return the connections that a request includes and excludes."""
    return ScopeRequest(include=tuple(scope.include), exclude=tuple(scope.exclude))


def explanation_for(principal: Principal, outcome: SearchOutcome) -> Explanation:
    """Return what each stage did, for admins with the excluded connections that their key may manage."""
    explanation = shape.explanation(outcome)
    if principal.is_admin:
        known = set(managed_connections(principal).values_list("pk", flat=True))
        excluded = [it for it in outcome.state.scope.excluded if it.connection.id in known]
        explanation.excluded = [
            ExcludedOut(connection=it.connection.slug, name=it.connection.name, reason=it.reason.value)
            for it in excluded
        ]
    return explanation
