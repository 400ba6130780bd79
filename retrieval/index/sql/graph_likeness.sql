-- How near the first chunks of documents in scope, and these chunks, are to what is asked of the names and to the question;
-- and, without a document, their means, and the deviation of the first, over a sample of the scope: the same number of every
-- connection.
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
),
sample AS MATERIALIZED (
    SELECT vector <=> %(relation)s::halfvec AS relation, vector <=> %(question)s::halfvec AS question
    FROM unnest(%(sampled)s::bigint[]) AS one (connection_id)
    CROSS JOIN LATERAL (
        SELECT vector
        FROM retrieval_embedding
        WHERE index_id = %(index)s AND connection_id = one.connection_id
        LIMIT %(sample)s
    ) AS embedding
    WHERE {in scope: one.connection_id}
)
SELECT
    document_id,
    ordinal,
    1 - (vector <=> %(relation)s::halfvec) AS relation,
    1 - (vector <=> %(question)s::halfvec) AS cosine,
    NULL::float8 AS deviation
FROM wanted
UNION ALL
SELECT NULL, NULL, 1 - avg(relation), 1 - avg(question), stddev_pop(relation) FROM sample
