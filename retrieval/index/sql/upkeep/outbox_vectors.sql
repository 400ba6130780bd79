-- Tells the read models outside PostgreSQL that documents have other vectors in an embedding index, if it is the active
-- one: they hold no other's.
INSERT INTO retrieval_outboxentry (document_id, connection_id, deleted, transaction_id)
SELECT id, connection_id, false, pg_current_xact_id()::text::bigint
FROM retrieval_document
WHERE
    id = ANY(%(documents)s)
    AND EXISTS (SELECT FROM retrieval_embeddingindex WHERE id = %(index)s AND status = 'active')
