-- Adds one name of a document.
INSERT INTO retrieval_documentname (document_id, key, connection_id, name, kind, quality)
VALUES (%(document)s, %(key)s, %(connection)s, %(name)s, %(kind)s, %(quality)s)
ON CONFLICT DO NOTHING
