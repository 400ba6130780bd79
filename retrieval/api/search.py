"""POST /api/v1/search."""

from django.http import HttpRequest
from ninja import Router, Status

from corecube.access import Principal, ScopeRequest
from corecube.api import principal_of
from retrieval.api import shape
from retrieval.api.managed import managed_connections
from retrieval.api.queued import QueuedOut, queued
from retrieval.api.schemas import CHANGE_REFUSALS, Explanation, ScopeIn, SearchIn, SearchOut
from retrieval.models import SearchRecord
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

router = Router(tags=["search"])


@router.post(
    "/search", response={200: SearchOut, 202: QueuedOut, **CHANGE_REFUSALS}, exclude_unset=True, summary="Search"
)
def search_documents(request: HttpRequest, body: SearchIn) -> SearchOut | Status[QueuedOut]:
    """Find the chunks that answer a query, among those that the key's user may see."""
    principal = principal_of(request)
    wanted = SearchRequest(
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
    if body.tier == "async":
        return Status(202, queued(request, principal, wanted))
    outcome = search(wanted, principal=principal)
    explain = explanation_for(principal, outcome) if body.explain else None
    return shape.search_out(outcome, request.build_absolute_uri, explain)


def scope_request(scope: ScopeIn) -> ScopeRequest:
    """Return the connections that a request includes and excludes."""
    return ScopeRequest(include=tuple(scope.include), exclude=tuple(scope.exclude))


def explanation_for(principal: Principal, outcome: SearchOutcome) -> Explanation:
    """Return what each stage did, for admins with the excluded connections that their key may manage."""
    explanation = shape.explanation(outcome)
    if principal.is_admin:
        known = set(managed_connections(principal).values_list("pk", flat=True))
        excluded = [it for it in outcome.state.scope.excluded if it.connection.id in known]
        explanation.excluded = [shape.excluded_out(it) for it in excluded]
    return explanation
