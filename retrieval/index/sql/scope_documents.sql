-- The documents in scope that a request's filter leaves, at most so many.
SELECT 1 AS found
FROM retrieval_document AS listed
WHERE {in scope: listed.connection_id}
LIMIT %(limit)s
