-- How many transactions came after one, counted up to a limit, and how many seconds ago the first of them wrote.
SELECT count(DISTINCT transaction_id), coalesce(extract(epoch FROM clock_timestamp() - min(at)), 0)::float8
FROM (
    SELECT transaction_id, at
    FROM retrieval_outboxentry
    WHERE transaction_id > %(after)s
    ORDER BY transaction_id
    LIMIT %(limit)s
) AS waiting
