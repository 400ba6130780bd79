-- The chunks in scope nearest to a query vector, by the HNSW index: approximate, for large scopes.
SELECT document_id, ordinal, 1 - (vector::halfvec(%(dim)s) <=> %(vector)s::halfvec(%(dim)s)) AS score
FROM retrieval_embedding
WHERE index_id = %(index)s AND {in scope: connection_id}
ORDER BY vector::halfvec(%(dim)s) <=> %(vector)s::halfvec(%(dim)s)
LIMIT %(candidates)s
