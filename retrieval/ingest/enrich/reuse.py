"""Reusing the stored enrichment when a document is ingested again."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from django.db.models import Q

from retrieval.ingest.enrich.triples import Triple, triples_of
from retrieval.ingest.preparation import PreparedChunk
from retrieval.ingest.prepared_document import PreparedDocument
from retrieval.models import Chunk
from retrieval.models.document import document_id

_Written = tuple[str, tuple[str, ...], tuple[Triple, ...] | None]


def with_stored_enrichment(documents: Sequence[PreparedDocument], connection_id: int) -> list[PreparedDocument]:
    """Return the documents with the stored enrichment of chunks with the same text in the same document.

    Enrichment costs money, and a change on one page does not affect the others.
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
        replace(
            document,
            text=replace(document.text, chunks=tuple(_enriched(it, identity, written) for it in document.text.chunks)),
        )
        for identity, document in ids.items()
    ]


def _enriched(chunk: PreparedChunk, identity: UUID, written: dict[tuple[UUID, str], _Written]) -> PreparedChunk:
    context, questions, triples = written.get((identity, chunk.content_hash), ("", (), None))
    return replace(chunk, draft=replace(chunk.draft, context_line=context, questions=questions, triples=triples))
