"""POST /api/v1/judgments: grade how well a passage answers a query."""

from typing import Annotated, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel, Field

from corecube.access import scope_for
from corecube.api import principal_of
from corecube.errors import InvalidRequestError
from retrieval.api.schemas import REFUSALS, StrictBody
from retrieval.errors import UnknownPassageError
from retrieval.records.judgments import PassageId, judge, normalised_query, passages_in
from retrieval.records.stored_trace import chunk_id_of

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
    chunk = passages_in(scope, [document_id]).filter(ordinal=ordinal).first()
    if chunk is None:
        raise UnknownPassageError
    judge(body.query, PassageId(document_id, chunk.content_hash), grade=body.grade, by=principal.user, scope=scope)
    return JudgmentOut(query=query, chunk_id=f"{document_id}:{ordinal}", grade=body.grade)
