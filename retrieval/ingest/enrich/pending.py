"""The chunks that lack the enrichment that their connection requests, with the context that a model reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from django.db.models import F, Q, QuerySet, TextField, Value
from django.db.models.functions import MD5, Cast, Concat

from corecube.models import Connection
from retrieval.ingest.enrich.prompts import Place
from retrieval.ingest.enrich.wants import EVERYTHING, Wants, requested
from retrieval.models import Chunk

#: Chunks of lower quality are boilerplate, and those with fewer tokens have too little content.
_MIN_QUALITY: Final = 0.3
_MIN_TOKENS: Final = 20
_LACKS: Final = {"context": Q(context_line=""), "questions": Q(questions=[]), "triples": Q(triples__isnull=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A chunk and the enrichment that it lacks."""

    row: Chunk
    place: Place
    wants: Wants


def waiting(connection: Connection, writable: Wants = EVERYTHING) -> QuerySet[Chunk]:
    """Return the chunks of a connection that lack something requested that can be written."""
    lacks = Q(pk__in=[])
    for kind in sorted(requested(connection) & writable):
        lacks |= _LACKS[kind]
    chunks = Chunk.objects.filter(lacks, connection_id=connection.pk, quality__gte=_MIN_QUALITY)
    return chunks.filter(token_count__gte=_MIN_TOKENS)


def drawn(connection: Connection, *, limit: int, seed: str, writable: Wants = EVERYTHING) -> list[Pending]:
    """Return at most `limit` waiting chunks by document; by the seed, so that failing chunks do not block others."""
    order = MD5(Concat(Cast(F("document_id"), TextField()), Value(seed, TextField()), output_field=TextField()))
    rows = list(
        waiting(connection, writable)
        .annotate(drawn=order)
        .order_by("drawn", "ordinal")
        .select_related("document")
        .defer("search", "minhash", "quality_parts")[:limit]
    )
    wants = requested(connection) & writable
    documents = groupby(rows, key=lambda row: row.document_id)
    return [pending for _, chunks in documents for pending in _of_document(list(chunks), wants)]


def _of_document(chunks: Sequence[Chunk], wants: Wants) -> Iterator[Pending]:
    first, last = min(it.section_start for it in chunks), max(it.section_end for it in chunks)
    around = Chunk.objects.filter(Q(ordinal=0) | Q(ordinal__gte=first, ordinal__lte=last))
    # The texts of the chunks' sections and of the document's first chunk, by ordinal.
    texts = dict(around.filter(document_id=chunks[0].document_id).values_list("ordinal", "text"))
    for chunk in chunks:
        section = range(chunk.section_start, chunk.section_end + 1)
        yield Pending(
            row=chunk,
            place=Place(
                title=chunk.document.title,
                heading_path=chunk.heading_path,
                text=chunk.text,
                section="\n\n".join(texts[place] for place in section if place in texts),
                beginning=texts.get(0, ""),
            ),
            wants=wants & _lacking(chunk),
        )


def _lacking(chunk: Chunk) -> Wants:
    has = {"context": chunk.context_line, "questions": chunk.questions, "triples": chunk.triples is not None}
    return Wants(kind for kind, found in has.items() if not found)
