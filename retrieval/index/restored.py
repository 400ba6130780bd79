"""A database that was just restored: what its rows do not contain, and what belongs to the database they came from."""

from retrieval.index.embedding_index import all_indexes, searched
from retrieval.index.encodings import require_sparse_index
from retrieval.index.outbox import forget_all
from retrieval.index.writer import create_vector_index, refresh_statistics
from retrieval.models import SparseEmbedding


def complete() -> None:
    """Build the HNSW indexes, update the planner's statistics, and let every read model be rebuilt.

    Transaction ids are those of another server, so the changes that read models follow mean nothing here.
    """
    forget_all()
    for row in all_indexes():
        create_vector_index(searched(row))
    sparse = SparseEmbedding.objects.order_by().first()
    if sparse:
        require_sparse_index(model_key=sparse.model_key, dim=sparse.vector.dimensions())
    refresh_statistics()
