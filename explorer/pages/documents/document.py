"""A document with its chunks, as its page shows it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from corecube.scope import AccessScope
from explorer import wording
from retrieval.models import Chunk, Document

_KILO: Final = 1024


@dataclass(frozen=True, slots=True)
class ChunkBlock:
    """A chunk in its document."""

    ordinal: int
    #: The heading path where it differs from the chunk before, else empty.
    headings: tuple[str, ...]
    text: str
    tokens: int
    #: Pages, rows or lines, in words.
    pages: str
    #: What a model wrote of it: where it stands, and questions that it answers.
    context: str = ""
    questions: tuple[str, ...] = ()
    #: "subject — relation — object", as a language model read it.
    triples: tuple[str, ...] = ()
    #: How much it says of what the document is about, 0 to 1; None until its sync has ended.
    salience: float | None = None


@dataclass(frozen=True, slots=True)
class DocumentPanel:
    """A document's facts and chunks."""

    id: UUID
    title: str
    external_id: str
    #: The source's own address; empty unless a browser may open it.
    link: str
    source: str
    compartment: str
    sensitivity: str
    trust: str
    source_type: str
    size: str
    synced: str
    changed: str
    access: str
    chunks: tuple[ChunkBlock, ...]


def document_panel(document: Document, chunks: Iterable[Chunk], *, scope: AccessScope, now: datetime) -> DocumentPanel:
    """Return the panel of a document in scope, its chunks in order."""
    inclusion = scope.inclusion(document.connection_id)
    connection = inclusion.connection
    return DocumentPanel(
        id=document.pk,
        title=document.title,
        external_id=document.external_id,
        link=web_link(document.uri),
        source=connection.name,
        compartment=connection.compartment,
        sensitivity=wording.level(connection.sensitivity),
        trust=wording.level(connection.trust),
        source_type=document.source_type,
        size=size(document.byte_size),
        synced=wording.ago(document.synced_at, now),
        changed=wording.ago(document.modified_at, now) if document.modified_at else "",
        access=wording.inclusion_rule(inclusion),
        chunks=tuple(_blocks(chunks, document.source_type)),
    )


def _blocks(chunks: Iterable[Chunk], source_type: str) -> Iterator[ChunkBlock]:
    path: tuple[str, ...] = ()
    for chunk in chunks:
        headings = tuple(chunk.heading_path)
        yield ChunkBlock(
            ordinal=chunk.ordinal,
            headings=headings if headings != path else (),
            text=chunk.text,
            tokens=chunk.token_count,
            pages=wording.place(chunk, source_type),
            context=chunk.context_line,
            questions=tuple(chunk.questions),
            triples=tuple(" \N{EM DASH} ".join(triple) for triple in chunk.triples or ()),
            salience=chunk.salience,
        )
        path = headings


def web_link(uri: str) -> str:
    """Return an address that a browser may open, or nothing: a source could name any scheme."""
    return uri if uri.startswith(("http://", "https://")) else ""


def size(count: int) -> str:
    """Return a number of bytes as people read it: "812 B", "4.2 KB", "1.3 MB"."""
    if count < _KILO:
        return f"{count} B"
    return f"{count / _KILO:.1f} KB" if count < _KILO**2 else f"{count / _KILO**2:.1f} MB"
