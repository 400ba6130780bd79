"""GET /api/v1/documents/{id}; PUT and DELETE /api/v1/documents for programs that push."""

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.api import principal_of
from corecube.connectors.push import Pushed
from corecube.errors import NotFoundError
from corecube.models import Connection
from corecube.sanitise import storable
from retrieval.api import push_schemas, schemas, shape
from retrieval.api.idempotency import Answer, IdempotencyKey, once
from retrieval.api.managed import pushable_connection
from retrieval.ingest.push import PushState, delete_pushed, name_for, push_document
from retrieval.models import Chunk, Document
from retrieval.models.document import document_id as id_of
from retrieval.records.accesses import note_accesses

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
    principal = principal_of(request)
    scope = scope_for(principal)
    document = Document.objects.in_scope(scope).filter(pk=document_id).first()
    if document is None:
        raise NotFoundError("No document with that id is visible to you.")
    audit.record("document.read", actor=principal.user, subject=str(document.pk), key=str(principal.key or ""))
    note_accesses([document.pk])
    absolute = request.build_absolute_uri
    chunks = document.chunks.filter(connection_id__in=scope.connection_ids)
    return schemas.DocumentOut(
        id=document.pk,
        title=document.title,
        uri=document.uri,
        url=absolute(shape.document_path(document.pk)),
        source=shape.source(scope.inclusion(document.connection_id).connection),
        source_type=document.source_type,
        raw_type=document.raw_type,
        metadata={name: str(value) for name, value in document.metadata.items()},
        byte_size=document.byte_size,
        modified_at=document.modified_at,
        synced_at=document.synced_at,
        chunk_count=chunks.count(),
        chunks=[
            _chunk(chunk, document.source_type, absolute)
            for chunk in chunks.order_by("ordinal")[offset : offset + limit]
        ],
    )


@router.put(
    "/documents",
    response={200: push_schemas.PushOut, 202: push_schemas.PushOut, **schemas.REFUSALS},
    summary="Push a document",
)
def push(
    request: HttpRequest, response: HttpResponse, body: push_schemas.PushIn, idempotency_key: IdempotencyKey = ""
) -> Status[Mapping[str, Any]]:
    """Take a document in, in place of an earlier one with its id. 202 where a sync does it soon.

    For admins, and for keys that may push to the connection. A request holds at most 2.5 MB. Sent again with the same
    `Idempotency-Key`, it is answered as before, with `Idempotent-Replayed: true`; another body with it is refused.
    """
    principal = principal_of(request)
    connection = pushable_connection(principal, body.connection)
    answer = once(
        idempotency_key,
        principal=principal,
        operation="push",
        body=body,
        work=lambda: _pushed(connection, body, principal),
    )
    if answer.replayed:
        response.headers["Idempotent-Replayed"] = "true"
    return Status(answer.status, answer.body)


def _pushed(connection: Connection, body: push_schemas.PushIn, principal: Principal) -> Answer:
    external_id = storable(body.external_id)
    pushed = Pushed(
        external_id=external_id,
        name=name_for(external_id, body.media_type, is_text=body.text is not None),
        content=body.content,
        media_type=storable(body.media_type),
        uri=storable(body.uri),
        modified_at=body.modified_at,
        facts={storable(name): storable(fact) for name, fact in _facts(body).items()},
    )
    outcome = push_document(connection, pushed, actor=principal.user, at_once=body.wait)
    if outcome.state is not PushState.UNCHANGED:
        audit.record_hourly(
            "documents.pushed", actor=principal.user, subject=connection.slug, key=str(principal.key or "")
        )
    status = 202 if outcome.state is PushState.QUEUED else 200
    return Answer(status, {"document_id": str(outcome.document_id), "state": outcome.state.value})


@router.delete(
    "/documents",
    response={200: push_schemas.PushDeletedOut, **schemas.REFUSALS},
    summary="Delete a pushed document",
)
def delete_push(
    request: HttpRequest,
    connection: Annotated[str, Query(max_length=50)],
    external_id: Annotated[str, Query(min_length=1, max_length=500)],
) -> push_schemas.PushDeletedOut:
    """Delete a pushed document and everything that was made of it, at once. For whom may push it."""
    principal = principal_of(request)
    found = pushable_connection(principal, connection)
    wanted = storable(external_id)
    document_id = id_of(found.pk, wanted)
    deleted = delete_pushed(found, wanted, actor=principal.user)
    if deleted:
        key = str(principal.key or "")
        audit.record("document.deleted", actor=principal.user, subject=str(document_id), connection=found.slug, key=key)
    return push_schemas.PushDeletedOut(document_id=document_id, deleted=deleted)


def _facts(body: push_schemas.PushIn) -> dict[str, str]:
    return body.metadata | ({"title": body.title} if body.title else {})


def _chunk(chunk: Chunk, source_type: str, absolute: shape.Absolute) -> schemas.ChunkOut:
    return schemas.ChunkOut(
        ordinal=chunk.ordinal,
        heading_path=chunk.heading_path,
        text=chunk.text,
        token_count=chunk.token_count,
        language=chunk.language,
        hints=chunk.hints,
        section=schemas.SectionOut(start=chunk.section_start, end=chunk.section_end),
        salience=chunk.salience,
        context_line=chunk.context_line,
        questions=chunk.questions,
        pages=shape.pages(chunk.page_start, chunk.page_end),
        rows=shape.rows(chunk.row_start, chunk.row_end, source_type),
        url=absolute(shape.document_path(chunk.document_id, chunk.ordinal)),
    )
