-- The approximate index over a byte a component of one embedding index's vectors, by Hamming distance.
CREATE INDEX IF NOT EXISTS retrieval_embedding_hnsw_%(index)s
ON retrieval_embedding USING hnsw (({levels}) bit_hamming_ops)
WITH (ef_construction = 160)
WHERE index_id = %(index)s
