"""POST /api/v1/recall and /api/v1/remember, for agents; their MCP tools do the same."""

from django.http import HttpRequest
from ninja import Router

from corecube.access import Principal
from corecube.api import principal_of
from corecube.sanitise import storable
from retrieval.answers.memory.items import Item, remember
from retrieval.answers.memory.recall import Question, Recalled, RecalledItem, recall
from retrieval.api import memory_schemas, schemas, shape
from retrieval.engine.types import MemoryType
from retrieval.models import SearchRecord

router = Router(tags=["memory"])

_KINDS = {kind.value: kind for kind in MemoryType}


@router.post("/recall", response={200: memory_schemas.RecallOut, **schemas.REFUSALS}, summary="Recall")
def recall_items(request: HttpRequest, body: memory_schemas.RecallIn) -> memory_schemas.RecallOut:
    """Find what is remembered, then what the rest of the scope holds, packed into a budget of tokens."""
    return recalled(body, principal_of(request), request.build_absolute_uri, SearchRecord.Surface.API)


@router.post("/remember", response={200: memory_schemas.RememberOut, **schemas.REFUSALS}, summary="Remember")
def remember_item(request: HttpRequest, body: memory_schemas.RememberIn) -> memory_schemas.RememberOut:
    """Keep an item in the memory of the key's user, which nobody else sees; it can be found at once.

    The same text in the same project takes its place. A key that is narrowed away from the memory cannot remember.
    """
    return remembered(body, principal_of(request), request.build_absolute_uri)


def recalled(
    body: memory_schemas.RecallIn, principal: Principal, absolute: shape.Absolute, surface: SearchRecord.Surface
) -> memory_schemas.RecallOut:
    """Recall, and return what the API answers."""
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
    return _recall_out(found, body.budget_tokens, absolute)


def remembered(
    body: memory_schemas.RememberIn, principal: Principal, absolute: shape.Absolute
) -> memory_schemas.RememberOut:
    """Remember, and return what the API answers."""
    item = Item(
        text=body.text,
        title=body.title,
        kind=body.kind,
        project=body.project,
        at=body.at,
        is_confirmed=body.confirmed,
    )
    done = remember(item, principal=principal)
    return memory_schemas.RememberOut(
        id=done.document_id,
        state=done.state.value,
        title=done.title,
        kind=body.kind,
        project=storable(body.project).strip(),
        at=done.at,
        url=absolute(shape.document_path(done.document_id)),
    )


def _recall_out(found: Recalled, budget_tokens: int, absolute: shape.Absolute) -> memory_schemas.RecallOut:
    return memory_schemas.RecallOut(
        items=[_item_out(item, absolute) for item in found.items],
        token_count=found.token_count,
        budget_tokens=budget_tokens,
        trace_ids=list(found.trace_ids),
        degraded=list(found.degraded),
        skipped=found.skipped,
    )


def _item_out(item: RecalledItem, absolute: shape.Absolute) -> memory_schemas.RecalledOut:
    hit, chunk = item.hit, item.hit.chunk
    return memory_schemas.RecalledOut(
        number=item.passage.number,
        id=str(hit.chunk_id),
        document_id=hit.chunk_id.document_id,
        origin="memory" if item.from_memory else "documents",
        source=shape.source(item.connection),
        title=chunk.title,
        heading_path=list(chunk.heading_path),
        text=chunk.text,
        url=absolute(shape.document_path(*hit.chunk_id)),
        kind=_KINDS.get(item.kind),
        project=item.project,
        at=chunk.modified_at or chunk.synced_at,
        score=hit.score,
        token_count=item.passage.token_count,
    )
