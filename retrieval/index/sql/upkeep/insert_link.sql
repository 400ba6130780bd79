-- Adds one end of a link that a chunk states.
INSERT INTO retrieval_chunklink (document_id, ordinal, kind, key, connection_id, name, sentence)
VALUES (%(document)s, %(ordinal)s, %(kind)s, %(key)s, %(connection)s, %(name)s, %(sentence)s)
