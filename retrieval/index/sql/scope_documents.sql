-- The documents in scope that a request's filter leaves, at most so many.
SELECT 1 AS found
FROM retrieval_document AS document
WHERE {in scope: document.connection_id}
LIMIT %(limit)s
