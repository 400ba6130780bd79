-- The approximate index over one embedding index's vectors, by cosine.
CREATE INDEX IF NOT EXISTS retrieval_embedding_hnsw_%(index)s
ON retrieval_embedding USING hnsw ((vector::halfvec(%(dim)s)) halfvec_cosine_ops)
WITH (ef_construction = 160)
WHERE index_id = %(index)s
