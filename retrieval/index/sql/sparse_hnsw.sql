-- The chunks in scope whose sparse vectors have the highest inner product with the query's, by the HNSW index.
SELECT document_id, ordinal, -(vector::sparsevec(%(dim)s) <#> %(vector)s::sparsevec(%(dim)s)) AS score
FROM retrieval_sparseembedding
WHERE model_key = %(model)s AND {in scope: connection_id}
ORDER BY vector::sparsevec(%(dim)s) <#> %(vector)s::sparsevec(%(dim)s)
LIMIT %(candidates)s
