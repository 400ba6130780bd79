"""GET /api/v1/connections/{slug}/quality: what the quality filter would drop, for admins."""

from django.http import HttpRequest
from ninja import Query, Router

from corecube.access import scope_for
from corecube.api import principal_of
from retrieval.api import shape
from retrieval.api.managed import managed_connection
from retrieval.api.quality_schemas import QualityIn, QualityOut
from retrieval.api.schemas import REFUSALS
from retrieval.operations.quality_preview import live_minimum, preview

router = Router(tags=["connections"])


@router.get("/connections/{slug}/quality", response={200: QualityOut, **REFUSALS}, summary="Low chunks")
def low_quality(request: HttpRequest, slug: str, asked: Query[QualityIn]) -> QualityOut:
    """Return what the quality filter would drop of a connection. For admins; the chunks only for who may read it."""
    principal = principal_of(request)
    connection = managed_connection(principal, slug)
    is_readable = scope_for(principal).allows(connection.pk)
    minimum = live_minimum() if asked.minimum is None else asked.minimum
    found = preview(connection, minimum=minimum, limit=asked.limit if is_readable else 0)
    return QualityOut(
        connection=found.slug,
        minimum=found.minimum,
        dropped=found.dropped,
        chunks=found.chunks,
        lowest=[shape.low_chunk(chunk, request.build_absolute_uri) for chunk in found.lowest] if is_readable else None,
    )
