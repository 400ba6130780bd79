-- Adds the compressed vectors of one chunk to {table} in place of another model's, unless the chunk changed since it was read.
INSERT INTO {table} (document_id, ordinal, connection_id, model_key, vectors)
SELECT chunk.document_id, chunk.ordinal, chunk.connection_id, %(model)s, %(vectors)s
FROM retrieval_chunk AS chunk
WHERE chunk.document_id = %(document)s AND chunk.ordinal = %(ordinal)s AND chunk.content_hash = %(content_hash)s
ON CONFLICT (document_id, ordinal)
DO UPDATE SET model_key = excluded.model_key, vectors = excluded.vectors
