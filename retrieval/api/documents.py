"""GET /api/v1/documents/{id}."""

from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router

from corecube.access import scope_for
from corecube.api import principal_of
from corecube.errors import NotFoundError
from retrieval.api import schemas, shape
from retrieval.models import Chunk, Document

router = Router(tags=["documents"])


@router.get(
    "/documents/{uuid:document_id}", response={200: schemas.DocumentOut, **schemas.REFUSALS}, summary="Read a document"
)
def read_document(
    request: HttpRequest,
    document_id: UUID,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> schemas.DocumentOut:
    """Return a document and its chunks from `offset` on. One outside the scope does not exist."""
    scope = scope_for(principal_of(request))
    document = Document.objects.in_scope(scope).filter(pk=document_id).first()
    if document is None:
        raise NotFoundError("No document with that id is visible to you.")
    absolute = request.build_absolute_uri
    chunks = document.chunks.filter(connection_id__in=scope.connection_ids)
    return schemas.DocumentOut(
        id=document.pk,
        title=document.title,
        uri=document.uri,
        url=absolute(shape.document_path(document.pk)),
        source=shape.source(scope.inclusion(document.connection_id).connection),
        source_type=document.source_type,
        metadata={name: str(value) for name, value in document.metadata.items()},
        byte_size=document.byte_size,
        modified_at=document.modified_at,
        synced_at=document.synced_at,
        chunk_count=chunks.count(),
        chunks=[_chunk(chunk, absolute) for chunk in chunks.order_by("ordinal")[offset : offset + limit]],
    )


def _chunk(chunk: Chunk, absolute: shape.Absolute) -> schemas.ChunkOut:
    return schemas.ChunkOut(
        ordinal=chunk.ordinal,
        heading_path=chunk.heading_path,
        text=chunk.text,
        token_count=chunk.token_count,
        pages=shape.pages(chunk.page_start, chunk.page_end),
        url=absolute(shape.document_path(chunk.document_id, chunk.ordinal)),
    )
