"""What the API reads and writes about one document's way through a search."""

from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from retrieval.api.preset_schemas import TopK
from retrieval.engine.pipeline import HYBRID
from retrieval.presets.catalog import DEFAULT_PRESET


class LifelineIn(BaseModel):
    """A search, and the document that is looked for in it."""

    model_config = ConfigDict(extra="forbid")

    q: str = Field(description="What is asked; presets read the first 500 characters.")
    document: UUID = Field(description="Id of the document.")
    preset: str = DEFAULT_PRESET
    mode: str = Field(default=HYBRID, description="hybrid, or the name of the only leg that searches.")
    top_k: TopK = 10
    include: list[str] = Field(default=[], description="Slugs of connections to search; empty means all visible ones.")
    exclude: list[str] = Field(default=[], description="Slugs of connections to leave out.")
    draft: bool = Field(default=False, description="For admins: runs with the preset's draft.")


class StepOut(BaseModel):
    """One step of the way."""

    step: str = Field(description="indexed, allowed, scope, a stage's name, top_k or packed.")
    state: str = Field(description="passed, missed (another leg found it), degraded, dropped or not_reached.")
    fact: str = Field(description="One clause with its numbers.")
    remedy: str = Field(description="What would have let it pass here; empty where nothing is known to.")


class WayOut(BaseModel):
    """What became of some of the document's chunks."""

    ended_at: str = Field(description="The step; empty for those that no leg found.")
    packed: bool
    chunks: int


class LifelineOut(BaseModel):
    """A document's way through a search."""

    trace_id: UUID
    document_id: UUID
    title: str
    connection: str = Field(description="The connection's name.")
    lost_at: str | None = Field(description="The first step that dropped it; none when it was packed.")
    citation: int | None = Field(description="The N of its passage [N]; none when it was not packed.")
    chunk_id: str | None = Field(description="The chunk that the steps tell of: the one that came furthest.")
    steps: list[StepOut]
    chunks: list[WayOut]
