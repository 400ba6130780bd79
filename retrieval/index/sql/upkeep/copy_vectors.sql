-- Gives documents' chunks in an embedding index the vectors that another one of the same model holds.
INSERT INTO retrieval_embedding (document_id, ordinal, index_id, connection_id, vector)
SELECT document_id, ordinal, %(index)s, connection_id, vector
FROM retrieval_embedding
WHERE index_id = %(source)s AND document_id = ANY(%(documents)s)
ON CONFLICT DO NOTHING
