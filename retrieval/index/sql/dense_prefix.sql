-- The chunks in scope nearest to a query vector: the HNSW index over the first components finds candidates, the whole
-- vectors choose among them.
WITH candidates AS MATERIALIZED (
    SELECT document_id, ordinal, vector <=> %(vector)s::halfvec AS distance
    FROM retrieval_embedding
    WHERE index_id = %(index)s AND {in scope: connection_id}
    ORDER BY
        subvector(vector::halfvec(%(dim)s), 1, %(scan_dim)s)::halfvec(%(scan_dim)s)
        <=> subvector(%(vector)s::halfvec(%(dim)s), 1, %(scan_dim)s)::halfvec(%(scan_dim)s)
    LIMIT %(candidates)s
)
SELECT document_id, ordinal, 1 - distance AS score
FROM candidates
ORDER BY distance, document_id, ordinal
LIMIT %(depth)s
