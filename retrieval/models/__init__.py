"""Documents, chunks, their embeddings, and the record of what was ingested and searched."""

from retrieval.models.document import Chunk, Document, OutboxEntry, TermFrequency
from retrieval.models.embedding import Embedding, EmbeddingIndex
from retrieval.models.search import SearchRecord
from retrieval.models.sync import Sync, SyncProblem

__all__ = [
    "Chunk",
    "Document",
    "Embedding",
    "EmbeddingIndex",
    "OutboxEntry",
    "SearchRecord",
    "Sync",
    "SyncProblem",
    "TermFrequency",
]
