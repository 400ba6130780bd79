-- The chunks in scope whose sparse vectors have the highest inner product with the query's, by comparing every one. No index
-- has the product of vectors without a length in their type.
SELECT document_id, ordinal, score
FROM (
    SELECT document_id, ordinal, -(vector <#> %(vector)s::sparsevec) AS score
    FROM retrieval_sparseembedding
    WHERE model_key = %(model)s AND {in scope: connection_id}
    ORDER BY score DESC, document_id, ordinal
    LIMIT %(depth)s
) AS nearest
WHERE score > 0
ORDER BY score DESC, document_id, ordinal
