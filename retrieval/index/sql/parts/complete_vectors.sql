-- The vectors of the pooled chunks, where there are any.
LEFT JOIN retrieval_embedding AS embedding
    ON embedding.document_id = wanted.document_id
    AND embedding.ordinal = wanted.ordinal
    AND embedding.index_id = %(index)s
