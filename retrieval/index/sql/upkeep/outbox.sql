-- Tells the read models outside PostgreSQL that documents changed or went.
INSERT INTO retrieval_outboxentry (document_id, connection_id, deleted, transaction_id)
SELECT id, connection_id, %(deleted)s, pg_current_xact_id()::text::bigint
FROM retrieval_document
WHERE id = ANY(%(documents)s)
