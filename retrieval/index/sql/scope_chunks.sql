-- How many chunks in scope a request's filter leaves, by connection; all together at most so many are counted.
SELECT connection_id, count(*) AS chunks
FROM (
    SELECT connection_id
    FROM retrieval_chunk
    WHERE {in scope: connection_id}
    LIMIT %(limit)s
) AS counted
GROUP BY connection_id
