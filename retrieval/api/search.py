"""POST /api/v1/search."""

from django.http import HttpRequest
from ninja import Router, Status

from corecube.access import Principal, ScopeRequest
from corecube.api import principal_of
from retrieval.api import schemas, shape
from retrieval.api.managed import managed_connections
from retrieval.api.queued import QueuedOut, queued
from retrieval.models import SearchRecord
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

router = Router(tags=["search"])


@router.post(
    "/search",
    response={200: schemas.SearchOut, 202: QueuedOut, 409: schemas.ErrorOut, **schemas.REFUSALS},
    exclude_unset=True,
    summary="Search",
)
def search_documents(request: HttpRequest, body: schemas.SearchIn) -> schemas.SearchOut | Status[QueuedOut]:
    """Find the chunks that answer a query, among those that the key's user may see."""
    principal = principal_of(request)
    if body.tier == "async":
        return Status(202, queued(request, principal, body))
    outcome = search(
        SearchRequest(
            text=body.query,
            preset=body.preset,
            mode=body.mode,
            top_k=body.top_k,
            narrowing=scope_request(body.scope),
            reveal_excluded=body.explain and principal.is_admin,
            overrides=body.overrides,
            draft=body.draft,
            surface=SearchRecord.Surface.API,
        ),
        principal=principal,
    )
    explain = explanation_for(principal, outcome) if body.explain else None
    return shape.search_out(outcome, request.build_absolute_uri, explain)


def scope_request(scope: schemas.ScopeIn) -> ScopeRequest:
    """Return how a request narrows its principal's scope."""
    return ScopeRequest(include=tuple(scope.include), exclude=tuple(scope.exclude))


def explanation_for(principal: Principal, outcome: SearchOutcome) -> schemas.Explanation:
    """Return what each stage did; an admin is also told of the excluded connections that the key may know of."""
    explanation = shape.explanation(outcome)
    if principal.is_admin:
        known = set(managed_connections(principal).values_list("pk", flat=True))
        excluded = [it for it in outcome.state.scope.excluded if it.connection.id in known]
        explanation.excluded = [shape.excluded_out(it) for it in excluded]
    return explanation
