"""Carrying over what a language model wrote when a document is taken in again."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from django.db.models import Q

from retrieval.ingest.enrich.triples import Triple, triples_of
from retrieval.ingest.preparation import PreparedChunk
from retrieval.ingest.prepare import PreparedDocument
from retrieval.models import Chunk
from retrieval.models.document import document_id

_Written = tuple[str, tuple[str, ...], tuple[Triple, ...] | None]


def with_kept_enrichment(documents: Sequence[PreparedDocument], connection_id: int) -> list[PreparedDocument]:
    """Return the documents whose chunks have what was written for chunks of the same document with the same text.

    It was paid for, and one changed page does not change where the others stand.
    """
    ids = {document_id(connection_id, document.item.external_id): document for document in documents}
    written: dict[tuple[UUID, str], _Written] = {
        (identity, digest): (context, tuple(questions), triples_of(triples))
        for identity, digest, context, questions, triples in Chunk.objects.filter(document_id__in=list(ids))
        .exclude(Q(context_line="") & Q(questions=[]) & Q(triples__isnull=True))
        .values_list("document_id", "content_hash", "context_line", "questions", "triples")
    }
    if not written:
        return list(documents)
    return [
        replace(document, text=replace(document.text, chunks=_with_kept(identity, document.text.chunks, written)))
        for identity, document in ids.items()
    ]


def _with_kept(
    identity: UUID, chunks: Sequence[PreparedChunk], written: dict[tuple[UUID, str], _Written]
) -> tuple[PreparedChunk, ...]:
    found = ((chunk, written.get((identity, chunk.content_hash), ("", (), None))) for chunk in chunks)
    return tuple(
        replace(chunk, draft=replace(chunk.draft, context_line=context, questions=questions, triples=triples))
        for chunk, (context, questions, triples) in found
    )
