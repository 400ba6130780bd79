-- The vectors of these documents' chunks in an embedding index, in PostgreSQL's binary form: four bytes, then half floats.
SELECT connection_id, document_id, ordinal, halfvec_send(vector)
FROM retrieval_embedding
WHERE index_id = %(index)s AND document_id = ANY(%(documents)s)
ORDER BY connection_id, document_id, ordinal
