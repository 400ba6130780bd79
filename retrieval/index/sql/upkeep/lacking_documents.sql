-- The next documents, by id, that have chunks without a vector in an embedding index, with how many.
SELECT chunk.document_id, count(*)
FROM retrieval_chunk AS chunk
WHERE chunk.document_id > %(after)s
    AND NOT EXISTS (
        SELECT FROM retrieval_embedding AS embedding
        WHERE embedding.document_id = chunk.document_id
            AND embedding.ordinal = chunk.ordinal
            AND embedding.index_id = %(index)s
    )
GROUP BY chunk.document_id
ORDER BY chunk.document_id
LIMIT %(limit)s
