"""What agents send to remember and to recall, over REST and over MCP."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from retrieval.answers.memory.items import MAX_CHARACTERS
from retrieval.api.request_body import RequestBody
from retrieval.api.schemas import Source
from retrieval.engine.types import MemoryType

MAX_BUDGET_TOKENS = 32_000


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


#: UTC where no zone is given.
Moment = Annotated[datetime, AfterValidator(_in_utc)]
Project = Annotated[str, Field(max_length=100, description="The project that it belongs to; empty for none.")]


class RememberToolIn(RequestBody):
    """Something to remember."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=MAX_CHARACTERS, description="What to remember, complete in itself.")
    title: str = Field(default="", max_length=200, description="A short name; without one, the text's first line.")
    kind: MemoryType = Field(
        default=MemoryType.SEMANTIC,
        description="episodic: what happened; semantic: a fact; procedural: how to do something; decision; code.",
    )
    project: Project = ""
    confirmed: bool = Field(default=False, description="The user said so; without that it counts as inferred.")


class RememberIn(RememberToolIn):
    """Something to remember, with its time."""

    at: Moment | None = Field(default=None, description="When it happened; now where nothing is given.")


class RememberOut(BaseModel):
    """What became of it."""

    id: UUID = Field(description="The document that holds it.")
    state: str = Field(description="indexed: it can be found; queued: after the next sync; unchanged: it was the same.")
    title: str
    kind: MemoryType
    project: str
    at: datetime
    url: str


class RecallToolIn(RequestBody):
    """What is to be recalled."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1, description="A question or keywords.")
    budget_tokens: int = Field(
        default=2000, ge=100, le=MAX_BUDGET_TOKENS, description="Tokens that all items have together, at the most."
    )
    project: str = Field(
        default="", max_length=100, description="Of the memory, items of this project and those of none; empty: all."
    )


class RecallIn(RecallToolIn):
    """What is to be recalled, and of which kind and time. These narrow the memory alone."""

    kinds: list[MemoryType] = Field(default=[], max_length=len(MemoryType), description="Empty: all kinds.")
    since: Moment | None = None
    until: Moment | None = None


class RecalledOut(BaseModel):
    """An item that was recalled, and where it comes from."""

    number: int
    id: str = Field(description="Opens it with fetch.")
    document_id: UUID
    origin: str = Field(description="memory, or documents for everything else in scope.")
    source: Source
    title: str
    heading_path: list[str]
    text: str
    url: str
    kind: MemoryType | None = Field(description="Of a remembered item.")
    project: str
    at: datetime = Field(description="When it happened or last changed.")
    score: float
    token_count: int


class RecallOut(BaseModel):
    """What was recalled: the memory first, then the rest."""

    items: list[RecalledOut]
    token_count: int
    budget_tokens: int
    trace_ids: list[UUID]
    degraded: list[str]
    skipped: str = Field(default="", description="Why nothing was searched; empty where something was.")
