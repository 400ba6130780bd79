-- How near the first chunks of documents in scope, and these chunks, are to what is asked of the names and to the question.
WITH wanted AS MATERIALIZED (
    SELECT embedding.document_id, embedding.ordinal, embedding.vector
    FROM unnest(%(documents)s::uuid[]) AS target (document_id)
    CROSS JOIN LATERAL (
        SELECT document_id, ordinal, vector
        FROM retrieval_embedding
        WHERE document_id = target.document_id AND index_id = %(index)s AND {in scope: connection_id}
        ORDER BY ordinal
        LIMIT %(leading)s
    ) AS embedding
    UNION
    SELECT document_id, ordinal, vector
    FROM retrieval_embedding
    JOIN unnest(%(chunk_documents)s::uuid[], %(chunk_ordinals)s::int[]) AS chunk (document_id, ordinal)
        USING (document_id, ordinal)
    WHERE index_id = %(index)s AND {in scope: connection_id}
)
SELECT
    document_id,
    ordinal,
    1 - (vector <=> %(relation)s::halfvec) AS relation,
    1 - (vector <=> %(question)s::halfvec) AS cosine
FROM wanted
