-- How near the first chunks of documents in scope, and these chunks, are to what is asked of the names and to the question.
-- Shards run both parts at once, as they are in one subquery.
SELECT *
FROM (
    SELECT
        document_id,
        ordinal,
        1 - (vector <=> %(relation)s::halfvec) AS relation,
        1 - (vector <=> %(question)s::halfvec) AS cosine
    FROM retrieval_embedding
    WHERE
        document_id = ANY(%(documents)s::uuid[]) AND ordinal < %(leading)s
        AND index_id = %(index)s AND {in scope: connection_id}
    UNION
    SELECT
        embedding.document_id,
        embedding.ordinal,
        1 - (embedding.vector <=> %(relation)s::halfvec),
        1 - (embedding.vector <=> %(question)s::halfvec)
    FROM retrieval_embedding AS embedding
    JOIN unnest(%(chunk_documents)s::uuid[], %(chunk_ordinals)s::int[]) AS chunk (document_id, ordinal)
        ON chunk.document_id = embedding.document_id AND chunk.ordinal = embedding.ordinal
    WHERE embedding.index_id = %(index)s AND {in scope: embedding.connection_id}
) AS found
