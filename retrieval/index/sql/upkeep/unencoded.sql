-- The next chunks of a connection, by key, that have no encoding by a model; {table} holds its encodings.
SELECT
    chunk.document_id, chunk.ordinal, chunk.content_hash, document.title, chunk.heading_path, chunk.text
FROM retrieval_chunk AS chunk
JOIN retrieval_document AS document ON document.id = chunk.document_id
WHERE chunk.connection_id = %(connection)s
    AND (chunk.document_id, chunk.ordinal) > (%(document)s, %(ordinal)s)
    AND NOT EXISTS (
        SELECT
        FROM {table} AS encoding
        WHERE
            encoding.document_id = chunk.document_id
            AND encoding.ordinal = chunk.ordinal
            AND encoding.model_key = %(model)s
    )
ORDER BY chunk.document_id, chunk.ordinal
LIMIT %(limit)s
