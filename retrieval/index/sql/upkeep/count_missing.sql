-- How many chunks there are, and how many of them have no vector in an embedding index.
SELECT count(*), count(*) FILTER (WHERE embedding.document_id IS NULL)
FROM retrieval_chunk AS chunk
LEFT JOIN retrieval_embedding AS embedding
    ON embedding.document_id = chunk.document_id
    AND embedding.ordinal = chunk.ordinal
    AND embedding.index_id = %(index)s
