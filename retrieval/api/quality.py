"""GET /api/v1/connections/{slug}/quality: what the quality filter would drop, for admins."""

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import BaseModel, ConfigDict, Field

from corecube.access import scope_for
from corecube.api import principal_of
from retrieval.api.managed import managed_connection
from retrieval.api.schemas import REFUSALS, filled
from retrieval.api.shape import document_path
from retrieval.engine.types import ChunkId
from retrieval.operations.quality_preview import live_minimum, preview

router = Router(tags=["connections"])


class QualityIn(BaseModel):
    """The threshold and the number of listed chunks."""

    model_config = ConfigDict(extra="forbid")

    minimum: float | None = Field(default=None, ge=0, le=1, description="Threshold; default: the live one.")
    least: float | None = Field(default=None, ge=0, le=1, description="Former name of `minimum`.")
    limit: int = Field(default=50, ge=0, le=200, description="Number of listed chunks.")


class LowChunkOut(BaseModel):
    """A chunk below the threshold."""

    chunk_id: str
    title: str
    url: str = Field(description="The chunk on its document's page.")
    quality: float
    parts: dict[str, float] = Field(description="Deductions from the quality, largest first.")
    beginning: str = Field(description="The first 80 characters.")


class QualityOut(BaseModel):
    """The chunks of a connection that the quality filter would drop."""

    connection: str
    minimum: float
    dropped: int
    chunks: int
    lowest: list[LowChunkOut] | None = Field(description="The lowest first; null for admins without access to them.")


@router.get("/connections/{slug}/quality", response={200: QualityOut, **REFUSALS}, summary="List low-quality chunks")
def low_quality(request: HttpRequest, slug: str, asked: Query[QualityIn]) -> QualityOut:
    """Return the chunks that the quality filter would drop. For admins; chunk texts only with access to them."""
    principal = principal_of(request)
    connection = managed_connection(principal, slug)
    is_readable = scope_for(principal).allows(connection.pk)
    wanted = asked.least if asked.minimum is None else asked.minimum
    minimum = live_minimum() if wanted is None else wanted
    found = preview(connection, minimum=minimum, limit=asked.limit if is_readable else 0)
    return filled(
        QualityOut,
        found,
        connection=found.slug,
        lowest=[
            filled(
                LowChunkOut,
                chunk,
                chunk_id=str(ChunkId(chunk.document_id, chunk.ordinal)),
                url=request.build_absolute_uri(document_path(chunk.document_id, chunk.ordinal)),
            )
            for chunk in found.lowest
        ]
        if is_readable
        else None,
    )
