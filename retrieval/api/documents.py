"""GET /api/v1/documents/{id}; PUT and DELETE /api/v1/documents for programs that push."""

import base64
import binascii
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Self
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.api import principal_of
from corecube.connectors.push import Pushed
from corecube.database import first_or
from corecube.errors import NotFoundError
from corecube.models import Connection
from corecube.sanitise import storable
from retrieval.api import shape
from retrieval.api.idempotency import Answer, IdempotencyKey, once
from retrieval.api.managed import pushable_connection
from retrieval.api.schemas import REFUSALS, Pages, Rows, Source, StrictBody, filled
from retrieval.ingest.push import PushState, delete_pushed, name_for, push_document
from retrieval.models import Chunk, Document
from retrieval.models.document import document_id as id_of
from retrieval.records.accesses import note_accesses

_MAX_METADATA_FIELDS: Final = 50
_MetadataName = Annotated[str, StringConstraints(min_length=1, max_length=60)]
_MetadataValue = Annotated[str, StringConstraints(max_length=1000)]
router = Router(tags=["documents"])


class PushIn(StrictBody):
    """A document. The same `external_id` again replaces it."""

    model_config = ConfigDict(hide_input_in_errors=True)

    connection: str = Field(max_length=50, description="Slug of a connection of the kind push.")
    external_id: str = Field(min_length=1, max_length=500, description="Your id of the document; unique and stable.")
    title: str = Field(default="", max_length=500, description="Takes precedence over the title in the document.")
    text: str | None = Field(default=None, description="The document as text; either this or `content_base64`.")
    content_base64: str | None = Field(default=None, description="The document's bytes in base64.")
    media_type: str = Field(
        default="", max_length=120, description="Selects the parser; default: by the suffix of the id or the bytes."
    )
    uri: str = Field(default="", max_length=2000, description="http or https URL that opens the document.")
    modified_at: datetime | None = Field(default=None, description="Last change; UTC if no time zone is given.")
    wait: bool = Field(default=True, description="False: the next sync indexes it, even if small. Faster for many.")
    metadata: dict[_MetadataName, _MetadataValue] = Field(default={}, max_length=_MAX_METADATA_FIELDS)

    @field_validator("uri")
    @classmethod
    def _is_web_address(cls, uri: str) -> str:
        if uri and not uri.lower().startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://")
        return uri

    @field_validator("external_id")
    @classmethod
    def _is_printable(cls, external_id: str) -> str:
        if not external_id.isprintable() or not external_id.strip():
            raise ValueError("must contain only printable characters")
        return external_id

    @model_validator(mode="after")
    def _has_one_content(self) -> Self:
        if (self.text is None) == (self.content_base64 is None):
            raise ValueError("needs either text or content_base64")
        return self

    @field_validator("content_base64")
    @classmethod
    def _is_base64(cls, content: str | None) -> str | None:
        if content is not None:
            _decoded(content)
        return content

    @property
    def content(self) -> bytes:
        """The document's bytes."""
        if self.content_base64 is not None:
            return _decoded(self.content_base64)
        return (self.text or "").encode("utf-8", "replace")


class PushOut(BaseModel):
    """The result of a push."""

    document_id: UUID
    state: str = Field(description="indexed: searchable; queued: searchable after the next sync; unchanged.")


class PushDeletedOut(BaseModel):
    """The result of a deletion."""

    document_id: UUID
    deleted: bool = Field(description="False if the document did not exist.")


def _decoded(content: str) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except binascii.Error as error:
        raise ValueError("is not base64") from error


class SectionOut(BaseModel):
    """The section of a chunk: first and last ordinal, both included."""

    start: int
    end: int


class ChunkOut(BaseModel):
    """A part of a document."""

    ordinal: int
    heading_path: list[str]
    text: str
    token_count: int
    language: str = Field(description="Language in lower case, such as english; empty if unknown.")
    hints: list[str] = Field(description="Kinds of content in it: table, code, definition ...")
    section: SectionOut
    salience: float | None = Field(description="How well it represents its document, 0 to 1; null if not computed yet.")
    context_line: str = Field(description="A language model's line on its context; not text of the document.")
    questions: list[str] = Field(description="Questions that it answers, written by a language model.")
    pages: Pages | None
    rows: Rows | None
    url: str


class DocumentOut(BaseModel):
    """A document with some of its chunks."""

    id: UUID
    external_id: str = Field(description="Its id in the source.")
    title: str
    uri: str = Field(description="Its URI in the source; empty for none.")
    url: str = Field(description="The document's page.")
    source: Source
    source_type: str
    raw_type: str = Field(description="Media type or suffix in the source; empty for neither.")
    metadata: dict[str, str]
    byte_size: int
    modified_at: datetime | None
    synced_at: datetime
    chunk_count: int
    chunks: list[ChunkOut]


@router.get("/documents/{uuid:document_id}", response={200: DocumentOut, **REFUSALS}, summary="Read a document")
def read_document(
    request: HttpRequest,
    document_id: UUID,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> DocumentOut:
    """Return a document and its chunks from `offset` on. Documents outside the scope do not exist."""
    principal = principal_of(request)
    scope = scope_for(principal)
    missing = NotFoundError("No document with that id is visible to you.")
    document = first_or(missing, Document.objects.in_scope(scope).filter(pk=document_id))
    audit.record("document.read", actor=principal.user, subject=str(document.pk), key=str(principal.key or ""))
    note_accesses([document.pk])
    absolute = request.build_absolute_uri
    chunks = document.chunks.filter(connection_id__in=scope.connection_ids)
    return filled(
        DocumentOut,
        document,
        url=absolute(shape.document_path(document.pk)),
        source=shape.source(scope.inclusion(document.connection_id).connection),
        metadata=shape.metadata_of(document),
        chunk_count=chunks.count(),
        chunks=[
            _chunk(chunk, document.source_type, absolute)
            for chunk in chunks.order_by("ordinal")[offset : offset + limit]
        ],
    )


@router.put("/documents", response={200: PushOut, 202: PushOut, **REFUSALS}, summary="Push a document")
def push(
    request: HttpRequest, response: HttpResponse, body: PushIn, idempotency_key: IdempotencyKey = ""
) -> Status[Mapping[str, Any]]:
    """Index a document; it replaces an earlier one with its id. 202: the next sync indexes it.

    For admins, and for keys that may push to the connection. The maximum request size is 2.5 MB. A repeated request
    with the same `Idempotency-Key` gets the first response again, with `Idempotent-Replayed: true`; another body with
    that key is refused.
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


def _pushed(connection: Connection, body: PushIn, principal: Principal) -> Answer:
    external_id = storable(body.external_id)
    metadata = body.metadata | ({"title": body.title} if body.title else {})
    pushed = Pushed(
        external_id=external_id,
        name=name_for(external_id, body.media_type, is_text=body.text is not None),
        content=body.content,
        media_type=storable(body.media_type),
        uri=storable(body.uri),
        modified_at=body.modified_at,
        facts={storable(name): storable(value) for name, value in metadata.items()},
    )
    outcome = push_document(connection, pushed, actor=principal.user, at_once=body.wait)
    if outcome.state is not PushState.UNCHANGED:
        audit.record_hourly(
            "documents.pushed", actor=principal.user, subject=connection.slug, key=str(principal.key or "")
        )
    status = 202 if outcome.state is PushState.QUEUED else 200
    return Answer(status, {"document_id": str(outcome.document_id), "state": outcome.state.value})


@router.delete("/documents", response={200: PushDeletedOut, **REFUSALS}, summary="Delete a pushed document")
def delete_push(
    request: HttpRequest,
    connection: Annotated[str, Query(max_length=50)],
    external_id: Annotated[str, Query(min_length=1, max_length=500)],
) -> PushDeletedOut:
    """Delete a pushed document and everything derived from it at once. For principals who may push it."""
    principal = principal_of(request)
    found = pushable_connection(principal, connection)
    wanted = storable(external_id)
    document_id = id_of(found.pk, wanted)
    deleted = delete_pushed(found, wanted, actor=principal.user)
    if deleted:
        key = str(principal.key or "")
        audit.record("document.deleted", actor=principal.user, subject=str(document_id), connection=found.slug, key=key)
    return PushDeletedOut(document_id=document_id, deleted=deleted)


def _chunk(chunk: Chunk, source_type: str, absolute: shape.Absolute) -> ChunkOut:
    return filled(
        ChunkOut,
        chunk,
        section=SectionOut(start=chunk.section_start, end=chunk.section_end),
        pages=shape.pages(chunk.page_start, chunk.page_end),
        rows=shape.rows(chunk.row_start, chunk.row_end, source_type),
        url=absolute(shape.document_path(chunk.document_id, chunk.ordinal)),
    )
