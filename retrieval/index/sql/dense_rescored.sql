-- The chunks in scope nearest to a query vector among candidates from the vector files and all chunks of documents that
-- changed since these were written, by their whole vectors.
SELECT document_id, ordinal, 1 - distance AS score
FROM (
    SELECT embedding.document_id, embedding.ordinal, embedding.vector <=> %(vector)s::halfvec AS distance
    FROM unnest(%(documents)s::uuid[], %(ordinals)s::int[]) AS candidate (document_id, ordinal)
    JOIN retrieval_embedding AS embedding USING (document_id, ordinal)
    WHERE embedding.index_id = %(index)s AND {in scope: embedding.connection_id}
    UNION
    SELECT fresh.document_id, fresh.ordinal, fresh.vector <=> %(vector)s::halfvec
    FROM retrieval_embedding AS fresh
    WHERE
        fresh.document_id = ANY(%(changed)s::uuid[])
        AND fresh.index_id = %(index)s AND {in scope: fresh.connection_id}
) AS compared
ORDER BY distance, document_id, ordinal
LIMIT %(depth)s
