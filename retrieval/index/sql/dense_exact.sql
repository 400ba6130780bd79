-- The chunks in scope nearest to a query vector, by comparing every one of them: exact, for small scopes. No index has the
-- distance of whole vectors without a length in their type.
SELECT document_id, ordinal, 1 - distance AS score
FROM (
    SELECT document_id, ordinal, vector <=> %(vector)s::halfvec AS distance
    FROM retrieval_embedding
    WHERE index_id = %(index)s AND {in scope: connection_id}
    ORDER BY distance, document_id, ordinal
    LIMIT %(depth)s
) AS nearest
ORDER BY distance, document_id, ordinal
