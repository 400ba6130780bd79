"""What the API reads and writes about embedding indexes."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from retrieval.api.request_body import RequestBody


class IndexOut(BaseModel):
    """An embedding index, and how far it is."""

    id: int
    status: str = Field(description="active: searched; building: to take over; previous: kept to go back to.")
    model: str
    source: str = Field(description="local: and the model's folder, or the kind of a service.")
    dimensions: int
    mode: str = Field(description="chunk_first or late.")
    scan: str = Field(description="What searches walk it by: halfvec (whole vectors), int8, binary or prefix.")
    scan_dimensions: int = Field(description="Components that a prefix has; 0 for the other scans.")
    oversample: float = Field(description="Candidates of a walk for each hit wanted; the whole vectors choose.")
    chunks: int
    done: int = Field(description="Chunks that have a vector in it.")
    chunks_per_second: float = Field(description="Speed of its building so far; 0 while nothing is known.")
    seconds_left: float | None = Field(description="Time that the rest takes at this speed, where it is known.")
    problem: str = Field(description="What stopped its building; empty while nothing has.")
    created_at: datetime
    switched_at: datetime | None


class IndexIn(RequestBody):
    """An embedding index to be begun."""

    model: str = Field(
        default="", max_length=200, description="Folder of a local model; empty takes the configured one."
    )
    dimensions: int = Field(default=0, ge=0, le=4000, description="Components to keep; 0 keeps all of them.")
    next: bool = Field(default=False, description="Take the service that CORECUBE_NEXT_EMBEDDER describes.")
    mode: Literal["", "chunk_first", "late"] = Field(default="", description="Empty takes the configured one.")
    scan: Literal["halfvec", "int8", "binary", "prefix"] = Field(
        default="halfvec", description="What searches walk it by before whole vectors choose; prefix takes few models."
    )
    scan_dimensions: int = Field(default=0, ge=0, le=4000, description="Components that a prefix has.")
    oversample: float = Field(
        default=0, ge=0, le=20, description="Candidates for each hit wanted, 1 to 20; 0 takes the scan's usual."
    )
