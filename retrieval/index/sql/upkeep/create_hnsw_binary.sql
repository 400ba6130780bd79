-- The approximate index over one embedding index's signs of components, by Hamming distance.
CREATE INDEX IF NOT EXISTS retrieval_embedding_hnsw_%(index)s
ON retrieval_embedding USING hnsw ((binary_quantize(vector::halfvec(%(dim)s))::bit(%(dim)s)) bit_hamming_ops)
WITH (ef_construction = 160)
WHERE index_id = %(index)s
