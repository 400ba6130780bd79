"""Names for the chunks that a trace mentions, read within the scope of the search."""

from explorer.components.drops import chunk_label, labels_of
from retrieval.engine.types import ChunkId
from retrieval.models import Chunk
from retrieval.search.outcome import SearchOutcome


def chunk_labels(outcome: SearchOutcome) -> dict[ChunkId, str]:
    """Return what the search's chunks are called: the pool's, and those of dropped hits that are in scope.

    A chunk that is gone, or out of scope, is left out.
    """
    scope = outcome.state.scope
    labels = labels_of(outcome.state.hits, scope)
    unknown = {drop.chunk_id for drop in outcome.state.drops} - labels.keys()
    if not unknown:
        return labels
    sources = {inclusion.connection.id: inclusion.connection.name for inclusion in scope.included}
    rows = Chunk.objects.filter(
        document_id__in={chunk_id.document_id for chunk_id in unknown}, connection_id__in=sources
    ).values_list("document_id", "ordinal", "document__title", "heading_path", "connection_id")
    found = {
        ChunkId(document, ordinal): chunk_label(title, path, source=sources[connection_id])
        for document, ordinal, title, path, connection_id in rows
    }
    return labels | {chunk_id: label for chunk_id, label in found.items() if chunk_id in unknown}
