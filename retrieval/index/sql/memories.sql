-- The connections in scope that are somebody's memory: a scope holds one of these at the most.
SELECT connection_id
FROM retrieval_memory
WHERE {in scope: connection_id}
