-- The chunks of one document that tell most about a query, in scope only: the nearest to its vector, the best by its
-- terms, and those asked for; with how many chunks the document has in all, and how many have a vector.
WITH probed AS MATERIALIZED (
    SELECT
        chunk.document_id,
        chunk.ordinal,
        embedding.vector <=> %(vector)s::halfvec AS distance,
        embedding.vector IS NOT NULL AS has_vector,
        {score} AS fulltext,
        chunk.search @@ %(match)s::tsquery AS is_match
    FROM retrieval_chunk AS chunk
    LEFT JOIN retrieval_embedding AS embedding
        ON embedding.document_id = chunk.document_id
        AND embedding.ordinal = chunk.ordinal
        AND embedding.index_id = %(index)s
    WHERE chunk.document_id = %(document)s AND {in scope: chunk.connection_id}
),
placed AS (
    SELECT
        *,
        count(*) OVER () AS chunks,
        count(*) FILTER (WHERE has_vector) OVER () AS vectors,
        row_number() OVER (ORDER BY distance, ordinal) AS by_distance,
        row_number() OVER (ORDER BY is_match DESC, fulltext DESC, ordinal) AS by_fulltext
    FROM probed
)
SELECT document_id, ordinal, 1 - distance AS cosine, fulltext, is_match, chunks, vectors, by_distance, by_fulltext
FROM placed
WHERE by_distance = 1 OR by_fulltext = 1 OR ordinal = ANY(%(ordinals)s::int[])
ORDER BY ordinal
