"""What feedback and judgments read and write."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from retrieval.api.request_body import StrictBody

ChunkName = Annotated[str, Field(pattern=r"^[0-9a-fA-F-]{32,36}:[0-9]{1,9}$", description="A hit's `chunk_id`.")]


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
