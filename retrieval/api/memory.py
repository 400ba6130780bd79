"""POST /api/v1/recall and /api/v1/remember, for agents; the MCP tools use the same functions."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Router
from pydantic import AfterValidator, BaseModel, Field

from corecube.access import Principal
from corecube.api import principal_of
from corecube.sanitise import storable
from retrieval.answers.memory.items import MAX_CHARACTERS, Item, remember
from retrieval.answers.memory.recall import Question, RecalledItem, recall
from retrieval.api import shape
from retrieval.api.schemas import REFUSALS, Source, StrictBody, filled
from retrieval.engine.types import MemoryType
from retrieval.models import SearchRecord

MAX_BUDGET_TOKENS = 32_000


#: UTC if no time zone is given.
Moment = Annotated[datetime, AfterValidator(lambda moment: moment if moment.tzinfo else moment.replace(tzinfo=UTC))]
Project = Annotated[str, Field(max_length=100, description="Its project; empty for none.")]
router = Router(tags=["memory"])
_KINDS = {kind.value: kind for kind in MemoryType}


class RememberToolIn(StrictBody):
    """Something to remember."""

    text: str = Field(min_length=1, max_length=MAX_CHARACTERS, description="What to remember, self-contained.")
    title: str = Field(default="", max_length=200, description="A short name; empty: the text's first line.")
    kind: MemoryType = Field(
        default=MemoryType.SEMANTIC,
        description="episodic: what happened; semantic: a fact; procedural: how to do something; decision; code.",
    )
    project: Project = ""
    confirmed: bool = Field(default=False, description="Whether the user stated it; else it counts as inferred.")


class RememberIn(RememberToolIn):
    """Something to remember, with its time."""

    at: Moment | None = Field(default=None, description="When it happened; default: now.")


class RememberOut(BaseModel):
    """A stored memory item."""

    id: UUID = Field(description="Its document.")
    state: str = Field(description="indexed: searchable; queued: searchable after the next sync; unchanged.")
    title: str
    kind: MemoryType
    project: str
    at: datetime
    url: str


class RecallToolIn(StrictBody):
    """What to recall."""

    query: str = Field(min_length=1, description="A question or keywords.")
    budget_tokens: int = Field(
        default=2000, ge=100, le=MAX_BUDGET_TOKENS, description="Maximum number of tokens of all items together."
    )
    project: str = Field(
        default="", max_length=100, description="Only memory items of this project or of none; empty: all."
    )


class RecallIn(RecallToolIn):
    """What to recall, with kinds and times that filter the memory only."""

    kinds: list[MemoryType] = Field(default=[], max_length=len(MemoryType), description="Empty: all kinds.")
    since: Moment | None = None
    until: Moment | None = None


class RecalledOut(BaseModel):
    """A recalled item and its source."""

    number: int
    id: str = Field(description="Id for the fetch tool.")
    document_id: UUID
    origin: str = Field(description="memory, or documents for all other connections.")
    source: Source
    title: str
    heading_path: list[str]
    text: str
    url: str
    kind: MemoryType | None = Field(description="For memory items.")
    project: str
    at: datetime = Field(description="When it happened or last changed.")
    score: float
    token_count: int


class RecallOut(BaseModel):
    """Recalled items: first from the memory, then from documents."""

    items: list[RecalledOut]
    token_count: int
    budget_tokens: int
    trace_ids: list[UUID]
    degraded: list[str]
    skipped: str = Field(description="Why the search was skipped; empty if it ran.")


@router.post("/recall", response={200: RecallOut, **REFUSALS}, summary="Recall memory and documents")
def recall_items(request: HttpRequest, body: RecallIn) -> RecallOut:
    """Search the memory, then the other connections in scope, and pack the results into a token budget."""
    return recalled(body, principal_of(request), request.build_absolute_uri, SearchRecord.Surface.API)


@router.post("/remember", response={200: RememberOut, **REFUSALS}, summary="Store a memory")
def remember_item(request: HttpRequest, body: RememberIn) -> RememberOut:
    """Store an item in the memory of the key's user. It is private to that user and searchable at once.

    The same text in the same project replaces the item. A key without access to the memory cannot store items.
    """
    return remembered(body, principal_of(request), request.build_absolute_uri)


def recalled(
    body: RecallIn, principal: Principal, absolute: shape.Absolute, surface: SearchRecord.Surface
) -> RecallOut:
    """Recall items and return the response."""
    question = Question(
        query=body.query,
        budget_tokens=body.budget_tokens,
        project=storable(body.project).strip(),
        kinds=frozenset(body.kinds),
        since=body.since,
        until=body.until,
        surface=surface,
    )
    found = recall(question, principal=principal)
    return filled(
        RecallOut,
        found,
        items=[_item_out(item, absolute) for item in found.items],
        budget_tokens=body.budget_tokens,
        skipped=found.skipped,
    )


def remembered(body: RememberIn, principal: Principal, absolute: shape.Absolute) -> RememberOut:
    """Store an item and return the response."""
    item = Item(
        text=body.text, title=body.title, kind=body.kind, project=body.project, at=body.at, is_confirmed=body.confirmed
    )
    done = remember(item, principal=principal)
    return filled(
        RememberOut,
        done,
        id=done.document_id,
        kind=body.kind,
        project=storable(body.project).strip(),
        url=absolute(shape.document_path(done.document_id)),
    )


def _item_out(item: RecalledItem, absolute: shape.Absolute) -> RecalledOut:
    hit, chunk = item.hit, item.hit.chunk
    return filled(
        RecalledOut,
        chunk,
        number=item.passage.number,
        id=str(hit.chunk_id),
        document_id=hit.chunk_id.document_id,
        origin="memory" if item.from_memory else "documents",
        source=shape.source(item.connection),
        url=absolute(shape.document_path(*hit.chunk_id)),
        kind=_KINDS.get(item.kind),
        project=item.project,
        at=chunk.modified_at or chunk.synced_at,
        score=hit.score,
        token_count=item.passage.token_count,
    )
