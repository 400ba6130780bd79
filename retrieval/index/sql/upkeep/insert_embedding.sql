-- Adds one chunk's vector to an embedding index.
INSERT INTO retrieval_embedding (document_id, ordinal, index_id, connection_id, vector)
VALUES (%(document)s, %(ordinal)s, %(index)s, %(connection)s, %(vector)s::halfvec)
