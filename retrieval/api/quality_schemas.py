"""What the API reads and writes about the quality filter."""

from pydantic import BaseModel, ConfigDict, Field


class QualityIn(BaseModel):
    """What to look at of a connection's quality."""

    model_config = ConfigDict(extra="forbid")

    minimum: float | None = Field(default=None, ge=0, le=1, description="Threshold; without it, the one in use.")
    limit: int = Field(default=50, ge=0, le=200, description="Chunks listed.")


class LowChunkOut(BaseModel):
    """A chunk below the threshold."""

    chunk_id: str
    title: str
    url: str = Field(description="The chunk on its document's page.")
    quality: float
    parts: dict[str, float] = Field(description="What took from the quality, the heaviest part first.")
    beginning: str = Field(description="The first 80 characters.")


class QualityOut(BaseModel):
    """What the quality filter would drop of a connection."""

    connection: str
    minimum: float
    dropped: int
    chunks: int
    lowest: list[LowChunkOut] | None = Field(description="The lowest first; none for an admin who may not read them.")
