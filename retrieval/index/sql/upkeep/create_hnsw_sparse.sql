-- The approximate index over one sparse model's vectors, by inner product.
CREATE INDEX IF NOT EXISTS retrieval_sparse_hnsw_%(model)s
ON retrieval_sparseembedding USING hnsw ((vector::sparsevec(%(dim)s)) sparsevec_ip_ops)
WITH (ef_construction = 100)
WHERE model_key = %(model)s
