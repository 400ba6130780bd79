"""POST /api/v1/feedback: rate an answer or one of its cited passages."""

from django.http import HttpRequest
from ninja import Router, Status

from corecube.access import scope_for
from corecube.api import principal_of
from corecube.errors import InvalidRequestError
from corecube.scope import AccessScope
from retrieval.api.judgments import FeedbackIn
from retrieval.api.schemas import REFUSALS
from retrieval.engine.types import ChunkId
from retrieval.errors import UnknownPassageError, UnknownTraceError
from retrieval.models import SearchRecord
from retrieval.records.judgments import THUMB_GRADES, PassageId, judge, passages_in
from retrieval.records.stored_trace import chunk_id_of, ranking_of

router = Router(tags=["judgments"])


@router.post("/feedback", response={204: None, **REFUSALS}, summary="Rate an answer")
def rate(request: HttpRequest, body: FeedbackIn) -> Status[None]:
    """Rate an answer, or with `citation` one of its passages, which counts as a judgment.

    Only for the principal's searches, and for a key only for those of the key; other traces do not exist.
    """
    principal = principal_of(request)
    found = SearchRecord.objects.filter(user=principal.user, for_another=False, pk=body.trace_id)
    record = (found.filter(key=principal.key) if principal.key else found).first()
    if record is None:
        raise UnknownTraceError
    if body.citation is None:
        SearchRecord.objects.filter(pk=record.pk).update(feedback=body.rating)
    else:
        number = body.citation
        chunks = {passage["number"]: passage["chunk"] for passage in record.trace.get("passages", ())}
        if number not in chunks:
            raise InvalidRequestError(f"The answer has no passage {number}.")
        if not record.query:
            raise InvalidRequestError("The query text is not stored, so its passages cannot be judged.")
        scope = scope_for(principal)
        passage = _passage(record, chunk_id_of(chunks[number]), scope)
        judge(record.query, passage, grade=THUMB_GRADES[body.rating], by=principal.user, scope=scope)
    return Status(204, None)


def _passage(record: SearchRecord, chunk_id: ChunkId, scope: AccessScope) -> PassageId:
    """Return the passage with its text at the time of the search; records without its hash use the current chunk."""
    document_id, ordinal = chunk_id
    if read := dict(ranking_of(record.trace)).get(chunk_id):
        return PassageId(document_id, read)
    chunk = passages_in(scope, [document_id]).filter(ordinal=ordinal).first()
    if chunk is None:
        raise UnknownPassageError
    return PassageId(document_id, chunk.content_hash)
