"""POST /api/v1/feedback: what the asker thought of an answer, or of one passage that it cites."""

from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Status

from corecube.access import Principal, scope_for
from corecube.api import principal_of
from corecube.errors import InvalidRequestError
from corecube.scope import AccessScope
from retrieval.api.judgment_schemas import FeedbackIn
from retrieval.api.schemas import REFUSALS
from retrieval.engine.types import ChunkId
from retrieval.errors import UnknownPassageError, UnknownTraceError
from retrieval.models import SearchRecord
from retrieval.records.judgments import THUMB_GRADES, PassageId, judge, passages_in
from retrieval.records.stored_trace import chunk_id_of, ranking_of

router = Router(tags=["judgments"])


@router.post("/feedback", response={204: None, **REFUSALS}, summary="Rate an answer")
def rate(request: HttpRequest, body: FeedbackIn) -> Status[None]:
    """Keep a thumb for an answer, or with `citation` for one passage of it, where it counts as a judgment.

    Only of searches that the principal made; any other trace does not exist.
    """
    principal = principal_of(request)
    record = _own(principal, body.trace_id)
    if body.citation is None:
        SearchRecord.objects.filter(pk=record.pk).update(feedback=body.rating)
    else:
        _judge_citation(principal, record, body.citation, body.rating)
    return Status(204, None)


def _own(principal: Principal, trace_id: UUID) -> SearchRecord:
    """Return a search that the principal made; a key knows only of its own."""
    found = SearchRecord.objects.filter(user=principal.user, for_another=False, pk=trace_id)
    record = (found.filter(key=principal.key) if principal.key else found).first()
    if record is None:
        raise UnknownTraceError
    return record


def _judge_citation(principal: Principal, record: SearchRecord, number: int, rating: int) -> None:
    chunks = {passage["number"]: passage["chunk"] for passage in record.trace.get("passages", ())}
    if number not in chunks:
        raise InvalidRequestError(f"The answer has no passage {number}.")
    if not record.query:
        raise InvalidRequestError("The text of the question was not kept, so that no passage can be judged for it.")
    scope = scope_for(principal)
    passage = _passage(record, chunk_id_of(chunks[number]), scope)
    judge(record.query, passage, grade=THUMB_GRADES[rating], by=principal.user, scope=scope)


def _passage(record: SearchRecord, chunk_id: ChunkId, scope: AccessScope) -> PassageId:
    """Return the passage as it was read: the text of then. Records without its hash have that of the chunk now."""
    document_id, ordinal = chunk_id
    if read := dict(ranking_of(record.trace)).get(chunk_id):
        return PassageId(document_id, read)
    chunk = passages_in(scope, [document_id]).filter(ordinal=ordinal).first()
    if chunk is None:
        raise UnknownPassageError
    return PassageId(document_id, chunk.content_hash)
