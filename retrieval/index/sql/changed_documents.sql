-- The documents in scope that changed since a read model was written, up to one more than a limit, and whether changes are
-- forgotten that it lacks.
SELECT
    coalesce(array_agg(DISTINCT entry.document_id), '{}')::text[] AS documents,
    coalesce((SELECT transaction_id FROM retrieval_readmodel WHERE name = 'outbox'), 0) > %(position)s AS lacks
FROM (
    SELECT document_id
    FROM retrieval_outboxentry
    WHERE transaction_id > %(position)s AND {in scope: connection_id}
    LIMIT %(max_changed)s + 1
) AS entry
