-- The next documents of a connection, by id, that have chunks which were not read for names yet.
SELECT DISTINCT chunk.document_id
FROM retrieval_chunk AS chunk
WHERE chunk.connection_id = %(connection)s
    AND chunk.document_id > %(after)s
    AND NOT EXISTS (
        SELECT
        FROM retrieval_chunkmentions AS mentions
        WHERE mentions.document_id = chunk.document_id AND mentions.ordinal = chunk.ordinal
    )
ORDER BY chunk.document_id
LIMIT %(limit)s
