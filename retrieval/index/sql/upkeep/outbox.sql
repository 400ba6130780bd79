-- Tells the read models outside PostgreSQL that documents changed or went.
WITH coordinator AS MATERIALIZED (
    -- A shard would give its own.
    SELECT pg_current_xact_id()::text::bigint AS transaction_id
)
INSERT INTO retrieval_outboxentry (document_id, connection_id, deleted, transaction_id)
SELECT id, connection_id, %(deleted)s, coordinator.transaction_id
FROM retrieval_document
CROSS JOIN coordinator
WHERE id = ANY(%(documents)s)
