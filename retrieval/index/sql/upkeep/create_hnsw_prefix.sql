-- The approximate index over the first components of one embedding index's vectors, by cosine.
CREATE INDEX IF NOT EXISTS retrieval_embedding_hnsw_%(index)s
ON retrieval_embedding
USING hnsw ((subvector(vector::halfvec(%(dim)s), 1, %(scan_dim)s)::halfvec(%(scan_dim)s)) halfvec_cosine_ops)
WITH (ef_construction = 160)
WHERE index_id = %(index)s
