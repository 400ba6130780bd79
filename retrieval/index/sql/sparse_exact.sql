-- The chunks in scope whose sparse vectors have the highest inner product with the query's, by comparing every one.
SELECT document_id, ordinal, score
FROM (
    SELECT document_id, ordinal, -(vector <#> %(vector)s::sparsevec) AS score
    FROM retrieval_sparseembedding
    WHERE model_key = %(model)s AND {in scope: connection_id}
    -- Keeps the planner from the HNSW index, and from comparing anything twice.
    OFFSET 0
) AS compared
WHERE score > 0
ORDER BY score DESC, document_id, ordinal
LIMIT %(depth)s
