"""GET /api/v1/lifeline: the path of one document through a search."""

from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import BaseModel, ConfigDict, Field

from corecube.access import ScopeRequest, scope_for
from corecube.api import principal_of
from corecube.errors import NotFoundError
from retrieval.api.schemas import REFUSALS, TopK, filled
from retrieval.engine.pipeline import HYBRID
from retrieval.models import SearchRecord
from retrieval.presets.catalog import DEFAULT_PRESET
from retrieval.records.lifeline.service import Reader, follow
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

router = Router(tags=["search"])


class LifelineIn(BaseModel):
    """A search, and the document to follow."""

    model_config = ConfigDict(extra="forbid")

    q: str = Field(description="The query; presets read the first 500 characters.")
    document: UUID = Field(description="Id of the document.")
    preset: str = DEFAULT_PRESET
    mode: str = Field(default=HYBRID, description="hybrid, or the name of the only search leg.")
    top_k: TopK = 10
    include: list[str] = Field(default=[], description="Slugs of connections to search; empty means all visible ones.")
    exclude: list[str] = Field(default=[], description="Slugs of connections to leave out.")
    draft: bool = Field(default=False, description="For admins: runs with the preset's draft.")


class StepOut(BaseModel):
    """A step of the path."""

    step: str = Field(description="indexed, allowed, scope, a stage's name, or packed.")
    state: str = Field(description="passed, missed (another leg found it), degraded, dropped or not_reached.")
    fact: str = Field(description="What happened, with figures.")
    remedy: str = Field(description="A change that would let it pass this step; empty if none is known.")


class WayOut(BaseModel):
    """A group of the document's chunks with the same result."""

    ended_at: str = Field(description="The last step; empty for chunks that no search leg found.")
    packed: bool
    chunks: int


class LifelineOut(BaseModel):
    """A document's path through a search."""

    trace_id: UUID
    document_id: UUID
    title: str
    connection: str = Field(description="The connection's name.")
    lost_at: str | None = Field(description="The first step that dropped it; null if it was packed.")
    citation: int | None = Field(description="The N of its passage [N]; null if it was not packed.")
    chunk_id: str | None = Field(description="The chunk that the steps describe: the one that passed the most steps.")
    steps: list[StepOut]
    chunks: list[WayOut]


@router.get("/lifeline", response={200: LifelineOut, **REFUSALS}, summary="Trace a document")
def lifeline(request: HttpRequest, wanted: Query[LifelineIn]) -> LifelineOut:
    """Search, and follow one document through every stage. Documents outside the key's scope do not exist."""
    principal = principal_of(request)
    outcome = search(
        SearchRequest(
            text=wanted.q,
            preset=wanted.preset,
            mode=wanted.mode,
            top_k=wanted.top_k,
            narrowing=ScopeRequest(include=tuple(wanted.include), exclude=tuple(wanted.exclude)),
            draft=wanted.draft,
            surface=SearchRecord.Surface.API,
        ),
        principal=principal,
    )
    scope = scope_for(principal)
    line = follow(wanted.document, outcome, Reader(scope, frozenset(scope.connection_ids)))
    if line is None:
        raise NotFoundError("No document with that id is visible to you.")
    return filled(
        LifelineOut,
        line,
        trace_id=outcome.id,
        connection=line.source,
        lost_at=line.lost_at.name if line.lost_at else None,
        chunk_id=str(line.followed.chunk_id) if line.followed else None,
        steps=[filled(StepOut, step, step=step.name) for step in line.steps],
        chunks=[filled(WayOut, way, packed=way.is_packed) for way in line.ways],
    )
