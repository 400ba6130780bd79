-- Forgets changes that nobody needs any more, the oldest first, and tells the newest transaction that is forgotten.
WITH forgotten AS (
    DELETE FROM retrieval_outboxentry
    WHERE id IN (
        SELECT id
        FROM retrieval_outboxentry
        WHERE transaction_id <= %(until)s
        ORDER BY transaction_id
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    )
    RETURNING transaction_id
)
SELECT count(*), coalesce(max(transaction_id), 0) FROM forgotten
