"""Judgments: grade how well a passage answers a query, and rate answers and their passages."""

from typing import Annotated, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import BaseModel, Field

from corecube.access import scope_for
from corecube.api import principal_of
from corecube.database import first_or
from corecube.errors import InvalidRequestError
from corecube.scope import AccessScope
from retrieval.api.schemas import REFUSALS, StrictBody
from retrieval.engine.types import ChunkId
from retrieval.errors import UnknownPassageError, UnknownTraceError
from retrieval.models import SearchRecord
from retrieval.records.arrival import await_record
from retrieval.records.judgments import THUMB_GRADES, PassageId, judge, normalised_query, passages_in
from retrieval.records.stored_trace import chunk_id_of, ranking_of
from retrieval.records.use import note_rated_citation

ChunkName = Annotated[str, Field(pattern=r"^[0-9a-fA-F-]{32,36}:[0-9]{1,9}$", description="A hit's `chunk_id`.")]
router = Router(tags=["judgments"])


class FeedbackIn(StrictBody):
    """A rating of an answer or a passage."""

    trace_id: UUID = Field(description="The `trace_id` of the answer.")
    rating: Literal[1, -1] = Field(description="1 for thumbs up, -1 for thumbs down.")
    citation: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None, description="The N of a cited [N], to rate that passage instead of the answer."
    )


class JudgmentIn(StrictBody):
    """A grade."""

    query: str = Field(min_length=1, description="The query; case and white space are ignored.")
    chunk_id: ChunkName
    grade: Annotated[int, Field(ge=0, le=3)] | None = Field(
        description="0 not relevant, 1 related, 2 answers in part, 3 answers; null deletes an earlier grade."
    )
    explanation: str = Field(default="", max_length=500, description="Why; empty leaves an earlier one.")


class JudgmentOut(BaseModel):
    """A stored grade."""

    query: str = Field(description="As stored: lower case, white space normalised.")
    chunk_id: str
    grade: int | None


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
    passage = _current(ChunkId(document_id, ordinal), scope)
    judge(body.query, passage, grade=body.grade, by=principal.user, scope=scope, explanation=body.explanation)
    return JudgmentOut(query=query, chunk_id=f"{document_id}:{ordinal}", grade=body.grade)


@router.post("/feedback", response={204: None, **REFUSALS}, summary="Rate an answer")
def rate(request: HttpRequest, body: FeedbackIn) -> Status[None]:
    """Rate an answer, or with `citation` one of its passages, which counts as a judgment.

    Only for the principal's searches, and for a key only for those of the key; other traces do not exist.
    """
    principal = principal_of(request)
    await_record(body.trace_id)
    found = SearchRecord.objects.filter(user=principal.user, for_another=False, pk=body.trace_id)
    record = first_or(UnknownTraceError(), found.filter(key=principal.key) if principal.key else found)
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
        note_rated_citation(record, number, passage, body.rating)
    return Status(204, None)


def _passage(record: SearchRecord, chunk_id: ChunkId, scope: AccessScope) -> PassageId:
    """Return the passage with its text at the time of the search; records without its hash use the current chunk."""
    if read := dict(ranking_of(record.trace)).get(chunk_id):
        return PassageId(chunk_id.document_id, read)
    return _current(chunk_id, scope)


def _current(chunk_id: ChunkId, scope: AccessScope) -> PassageId:
    chunks = passages_in(scope, [chunk_id.document_id]).filter(ordinal=chunk_id.ordinal)
    return PassageId(chunk_id.document_id, first_or(UnknownPassageError(), chunks).content_hash)
