-- The keys that more than `minimum` chunks in scope hold, as they were counted before.
SELECT key
FROM retrieval_commonmention
WHERE {in scope: connection_id}
GROUP BY key
HAVING sum(chunks) > %(minimum)s
