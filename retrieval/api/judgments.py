"""POST /api/v1/judgments: grade how well a passage answers a query."""

from django.http import HttpRequest
from ninja import Router

from corecube.access import scope_for
from corecube.api import principal_of
from corecube.errors import InvalidRequestError
from retrieval.api.judgment_schemas import JudgmentIn, JudgmentOut
from retrieval.api.schemas import REFUSALS
from retrieval.errors import UnknownPassageError
from retrieval.records.judgments import PassageId, judge, normalised_query, passages_in
from retrieval.records.stored_trace import chunk_id_of

router = Router(tags=["judgments"])


@router.post("/judgments", response={200: JudgmentOut, **REFUSALS}, summary="Judge a passage")
def judge_passage(request: HttpRequest, body: JudgmentIn) -> JudgmentOut:
    """Store the principal's grade of a passage for a query; it replaces an earlier one."""
    principal = principal_of(request)
    scope = scope_for(principal)
    if not (query := normalised_query(body.query)):
        raise InvalidRequestError("A judgment needs a query.")
    try:
        document_id, ordinal = chunk_id_of(body.chunk_id)
    except ValueError as error:
        raise UnknownPassageError from error
    chunk = passages_in(scope, [document_id]).filter(ordinal=ordinal).first()
    if chunk is None:
        raise UnknownPassageError
    judge(body.query, PassageId(document_id, chunk.content_hash), grade=body.grade, by=principal.user, scope=scope)
    return JudgmentOut(query=query, chunk_id=f"{document_id}:{ordinal}", grade=body.grade)
