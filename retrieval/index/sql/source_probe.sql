-- The chunks in scope of documents of some source types: the nearest to a query vector first. Chunks without a vector, or
-- all of them without a query vector, come by their terms, then the newest.
SELECT
    chunk.document_id,
    chunk.ordinal,
    1 - (embedding.vector <=> %(vector)s::halfvec) AS cosine,
    CASE WHEN embedding.vector IS NULL OR %(vector)s::halfvec IS NULL
        THEN ts_rank(chunk.search, %(match)s::tsquery, 1) END AS rank
FROM retrieval_chunk AS chunk
JOIN retrieval_document AS document ON document.id = chunk.document_id
LEFT JOIN retrieval_embedding AS embedding
    ON embedding.document_id = chunk.document_id
    AND embedding.ordinal = chunk.ordinal
    AND embedding.index_id = %(index)s
WHERE
    {in scope: chunk.connection_id}
    AND {in scope: document.connection_id}
    AND document.source_type = ANY(%(source_types)s)
ORDER BY
    cosine DESC NULLS LAST,
    rank DESC NULLS LAST,
    coalesce(document.modified_at, document.synced_at) DESC,
    chunk.document_id,
    chunk.ordinal
LIMIT %(depth)s
