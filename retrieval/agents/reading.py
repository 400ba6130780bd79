"""The fetch tool: the text of a document or a passage."""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from corecube import audit
from corecube.access import Principal, scope_for
from corecube.errors import NotFoundError
from corecube.scope import AccessScope
from retrieval.agents.schemas import FetchToolOut
from retrieval.api.shape import Absolute, document_path
from retrieval.models import Chunk, Document
from retrieval.models.document import id_in
from retrieval.records.accesses import note_accesses

#: Maximum length of the text that one call returns, in characters.
MAX_CHARACTERS: Final = 100_000
#: Maximum overlap of two neighboring chunks, in characters (128 tokens).
_MAX_SHARED: Final = 2000
#: A shorter overlap is a coincidence.
_MIN_SHARED: Final = 20
_MAX_ORDINAL_LENGTH: Final = 9


def fetch(wanted: str, *, principal: Principal, absolute: Absolute) -> FetchToolOut:
    """Return the text of a document or of the chunk with that id; raise NotFoundError outside the scope."""
    document_id, ordinal = _parts(wanted)
    scope = scope_for(principal)
    document = Document.objects.in_scope(scope).filter(pk=document_id).first()
    if document is None:
        raise NotFoundError("No document with that id is visible to you.")
    chunks = document.chunks.filter(connection_id__in=scope.connection_ids).order_by("ordinal")
    if ordinal is not None:
        chunks = chunks.filter(ordinal=ordinal)
    text, truncated = _joined(chunks.iterator(chunk_size=100))
    if not text:
        raise NotFoundError("No passage with that id is visible to you.")
    note_accesses([document.pk])
    audit.record("document.read", actor=principal.user, subject=str(document.pk), key=str(principal.key or ""))
    return FetchToolOut(
        id=wanted,
        title=document.title,
        text=text,
        url=absolute(document_path(document.pk, ordinal)),
        metadata=_metadata(document, scope),
        truncated=truncated,
    )


def _parts(wanted: str) -> tuple[UUID, int | None]:
    name, colon, place = wanted.partition(":")
    document_id = id_in(name)
    is_place = place.isascii() and place.isdigit() and len(place) <= _MAX_ORDINAL_LENGTH
    if document_id is None or (colon and not is_place):
        raise NotFoundError("No document with that id is visible to you.")
    return document_id, int(place) if colon else None


def _joined(chunks: Iterable[Chunk]) -> tuple[str, bool]:
    """Return the chunks' text without overlaps, and whether it was truncated."""
    text = ""
    for chunk in chunks:
        text += joint(text, chunk.text)
        if len(text) > MAX_CHARACTERS:
            return text[:MAX_CHARACTERS], True
    return text, False


def joint(before: str, after: str) -> str:
    """Return what `after` adds to `before`: the text behind their overlap, without overlap a new paragraph."""
    if not before:
        return after
    limit = min(len(before), len(after), _MAX_SHARED)
    shared = next((size for size in range(limit, _MIN_SHARED - 1, -1) if before.endswith(after[:size])), 0)
    return after[shared:] if shared else f"\n\n{after}"


def _metadata(document: Document, scope: AccessScope) -> dict[str, str]:
    connection = scope.inclusion(document.connection_id).connection
    return {
        **{name: str(value) for name, value in document.metadata.items()},
        "connection": connection.name,
        "compartment": connection.compartment,
        "uri": document.uri,
        "source_type": document.source_type,
        "modified_at": document.modified_at.isoformat() if document.modified_at else "",
    }
