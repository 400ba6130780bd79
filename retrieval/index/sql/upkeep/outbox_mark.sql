-- Before which transaction every one had ended, and how many changes of some connections are of that one or later.
WITH settled AS (
    SELECT coalesce(%(before)s::bigint, pg_snapshot_xmin(pg_current_snapshot())::text::bigint) AS before
)
SELECT
    settled.before,
    (
        SELECT count(*)
        FROM retrieval_outboxentry
        WHERE transaction_id >= settled.before AND connection_id = ANY(%(connections)s)
    )
FROM settled
