"""What feedback and judgments read and write."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from retrieval.api.request_body import RequestBody

ChunkName = Annotated[str, Field(pattern=r"^[0-9a-fA-F-]{32,36}:[0-9]{1,9}$", description="A hit's `chunk_id`.")]


class FeedbackIn(RequestBody):
    """A thumb."""

    model_config = ConfigDict(extra="forbid")

    trace_id: UUID = Field(description="The `trace_id` that came with the answer.")
    rating: Literal[1, -1] = Field(description="1 for thumbs up, -1 for thumbs down.")
    citation: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None, description="The N of a cited [N]: rates that passage and not the answer."
    )


class JudgmentIn(RequestBody):
    """A grade."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1, description="The question; case and white space make no other question of it.")
    chunk_id: ChunkName
    grade: Annotated[int, Field(ge=0, le=3)] | None = Field(
        description="0 not relevant, 1 related, 2 answers in part, 3 answers; null takes an earlier grade back."
    )


class JudgmentOut(BaseModel):
    """A grade as it is kept."""

    query: str = Field(description="As judgments keep it: without case, white space normalised.")
    chunk_id: str
    grade: int | None
