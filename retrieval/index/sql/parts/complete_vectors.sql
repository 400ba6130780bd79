-- The vectors of the pooled chunks, where there are any.
LEFT JOIN retrieval_embedding AS embedding
    ON embedding.document_id = chunk.document_id
    AND embedding.ordinal = chunk.ordinal
    AND embedding.index_id = %(index)s
