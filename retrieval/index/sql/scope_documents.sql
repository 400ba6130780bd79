-- The documents in scope that a request's filter leaves, at most so many.
SELECT 1 AS found
FROM retrieval_document AS document
WHERE document.connection_id = ANY(%(scope)s)
LIMIT %(most)s
