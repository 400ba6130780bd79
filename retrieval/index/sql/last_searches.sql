-- The last searches of a period, newest first: the connections in their scope, and what fell back or was cut short.
SELECT connection_ids, degraded
FROM retrieval_searchrecord
WHERE at >= %(since)s
ORDER BY at DESC, id DESC
LIMIT %(most)s
