"""GET /api/v1/lifeline: where one document went in one search."""

from django.http import HttpRequest
from ninja import Query, Router

from corecube.access import ScopeRequest, scope_for
from corecube.api import principal_of
from corecube.errors import NotFoundError
from retrieval.api.lifeline_schemas import LifelineIn, LifelineOut, StepOut, WayOut
from retrieval.api.schemas import REFUSALS
from retrieval.models import SearchRecord
from retrieval.records.lifeline.service import Reader, follow
from retrieval.records.lifeline.types import Lifeline
from retrieval.search.outcome import SearchOutcome
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

router = Router(tags=["search"])


@router.get("/lifeline", response={200: LifelineOut, **REFUSALS}, summary="Where did a document go?")
def lifeline(request: HttpRequest, asked: Query[LifelineIn]) -> LifelineOut:
    """Search, and follow one document through every stage. One outside the key's scope does not exist."""
    principal = principal_of(request)
    outcome = search(
        SearchRequest(
            text=asked.q,
            preset=asked.preset,
            mode=asked.mode,
            top_k=asked.top_k,
            narrowing=ScopeRequest(include=tuple(asked.include), exclude=tuple(asked.exclude)),
            draft=asked.draft,
            surface=SearchRecord.Surface.API,
        ),
        principal=principal,
    )
    scope = scope_for(principal)
    line = follow(asked.document, outcome, Reader(scope, frozenset(scope.connection_ids)))
    if line is None:
        raise NotFoundError("No document with that id is visible to you.")
    return _lifeline_out(line, outcome)


def _lifeline_out(line: Lifeline, outcome: SearchOutcome) -> LifelineOut:
    return LifelineOut(
        trace_id=outcome.id,
        document_id=line.document_id,
        title=line.title,
        connection=line.source,
        lost_at=line.lost_at.name if line.lost_at else None,
        citation=line.citation,
        chunk_id=str(line.followed.chunk_id) if line.followed else None,
        steps=[
            StepOut(step=step.name, state=step.state.value, fact=step.fact, remedy=step.remedy) for step in line.steps
        ],
        chunks=[WayOut(ended_at=way.ended_at, packed=way.is_packed, chunks=way.chunks) for way in line.ways],
    )
