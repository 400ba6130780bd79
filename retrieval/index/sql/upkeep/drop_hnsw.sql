-- Drops the approximate index over one embedding index's vectors.
DROP INDEX IF EXISTS retrieval_embedding_hnsw_%(index)s
