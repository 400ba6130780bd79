"""Which chunks lack what their connection asks a model for, and what the model is told of each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from uuid import UUID

from django.db.models import F, Q, QuerySet, TextField, Value
from django.db.models.functions import MD5, Cast, Concat

from corecube.models import Connection
from retrieval.ingest.enrich.prompts import Place
from retrieval.ingest.enrich.triples import Triple, triples_of
from retrieval.ingest.enrich.wants import Wants, asked_for
from retrieval.models import Chunk

#: Chunks of poor quality are boilerplate, and those with fewer tokens say too little to be placed.
_MIN_QUALITY: Final = 0.3
_MIN_TOKENS: Final = 20
_EVERYTHING: Final = Wants()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A chunk and what it lacks."""

    document_id: UUID
    ordinal: int
    content_hash: str
    place: Place
    #: What it has already.
    context_line: str
    questions: tuple[str, ...]
    #: None where none was asked for yet.
    triples: tuple[Triple, ...] | None
    wants_context: bool
    wants_questions: bool
    wants_triples: bool


def waiting(connection: Connection, writable: Wants = _EVERYTHING) -> QuerySet[Chunk]:
    """Return the chunks of a connection that lack something that can be written.

    None where the connection asks for nothing.
    """
    wants = asked_for(connection) & writable
    lacks = Q(pk__in=[])
    if wants.context:
        lacks |= Q(context_line="")
    if wants.questions:
        lacks |= Q(questions=[])
    if wants.triples:
        lacks |= Q(triples__isnull=True)
    chunks = Chunk.objects.filter(lacks, connection_id=connection.pk, quality__gte=_MIN_QUALITY)
    return chunks.filter(token_count__gte=_MIN_TOKENS)


def drawn(connection: Connection, *, limit: int, seed: str, writable: Wants = _EVERYTHING) -> list[Wanted]:
    """Return at most so many waiting chunks, document by document.

    The seed decides which documents come first, so that those whose chunks fail every time do not block the others.
    """
    order = MD5(Concat(Cast(F("document_id"), TextField()), Value(seed, TextField()), output_field=TextField()))
    rows = list(
        waiting(connection, writable)
        .annotate(drawn=order)
        .order_by("drawn", "ordinal")
        .select_related("document")[:limit]
    )
    wants = asked_for(connection) & writable
    return [
        wanted for _, chunks in groupby(rows, key=lambda row: row.document_id) for wanted in _of_document(chunks, wants)
    ]


def _of_document(rows: Iterator[Chunk], wants: Wants) -> Iterator[Wanted]:
    chunks = list(rows)
    around = _texts(chunks)
    for chunk in chunks:
        section = range(chunk.section_start, chunk.section_end + 1)
        yield Wanted(
            document_id=chunk.document_id,
            ordinal=chunk.ordinal,
            content_hash=chunk.content_hash,
            place=Place(
                title=chunk.document.title,
                heading_path=chunk.heading_path,
                text=chunk.text,
                section="\n\n".join(around[place] for place in section if place in around),
                beginning=around.get(0, ""),
            ),
            context_line=chunk.context_line,
            questions=tuple(chunk.questions),
            triples=triples_of(chunk.triples),
            wants_context=wants.context and not chunk.context_line,
            wants_questions=wants.questions and not chunk.questions,
            wants_triples=wants.triples and chunk.triples is None,
        )


def _texts(chunks: Sequence[Chunk]) -> dict[int, str]:
    """Return the texts of the chunks' sections and of the document's first chunk, by ordinal."""
    first, last = min(it.section_start for it in chunks), max(it.section_end for it in chunks)
    wanted = Chunk.objects.filter(Q(ordinal=0) | Q(ordinal__gte=first, ordinal__lte=last))
    return dict(wanted.filter(document_id=chunks[0].document_id).values_list("ordinal", "text"))
