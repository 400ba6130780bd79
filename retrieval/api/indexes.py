"""GET /api/v1/indexes: the embedding indexes, for admins."""

from django.http import HttpRequest
from ninja import Router

from corecube.api import principal_of
from corecube.errors import NotPermittedError
from retrieval.api.index_schemas import IndexOut
from retrieval.api.managed import may_manage_presets
from retrieval.api.schemas import REFUSALS
from retrieval.index.embedding_index import kept_indexes, progress
from retrieval.models import EmbeddingIndex

router = Router(tags=["indexes"])


@router.get("/indexes", response={200: list[IndexOut], **REFUSALS}, summary="Embedding indexes")
def list_indexes(request: HttpRequest) -> list[IndexOut]:
    """Return the embedding indexes, the active one first. For admins, with a key that is not narrowed."""
    if not may_manage_presets(principal_of(request)):
        raise NotPermittedError("Only an admin may do this, with a key that is not narrowed.")
    return [_shown(row) for row in kept_indexes()]


def _shown(row: EmbeddingIndex) -> IndexOut:
    made = progress(row)
    return IndexOut(
        id=row.pk,
        status=row.status,
        model=row.model,
        source=row.source,
        dimensions=row.dim,
        mode=row.mode,
        chunks=made.chunks,
        done=made.done,
        chunks_per_second=round(made.rate, 1),
        seconds_left=made.seconds_left,
        problem=row.problem,
        created_at=row.created_at,
        switched_at=row.switched_at,
    )
