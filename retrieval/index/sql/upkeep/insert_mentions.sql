-- Adds what a chunk's text may be speaking of.
INSERT INTO retrieval_chunkmentions (document_id, ordinal, connection_id, keys, phrases)
VALUES (%(document)s, %(ordinal)s, %(connection)s, %(keys)s::bigint[], %(phrases)s)
