-- Adds a chunk's vector to an embedding index, in place of another one only where asked; nothing when the document, or
-- what was written for the chunk, changed since it was read.
INSERT INTO retrieval_embedding (document_id, ordinal, index_id, connection_id, vector)
SELECT chunk.document_id, chunk.ordinal, %(index)s, chunk.connection_id, %(vector)s::halfvec
FROM retrieval_chunk AS chunk
JOIN retrieval_document AS document ON document.id = chunk.document_id
WHERE chunk.document_id = %(document)s AND chunk.ordinal = %(ordinal)s AND document.fingerprint = %(fingerprint)s
    AND chunk.context_line = %(context_line)s
ON CONFLICT (document_id, ordinal, index_id) DO UPDATE SET vector = excluded.vector WHERE %(replaces)s
