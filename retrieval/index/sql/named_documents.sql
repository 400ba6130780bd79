-- How many of the documents that a request names are in scope.
SELECT count(*) AS documents
FROM retrieval_document
WHERE id = ANY(%(documents)s::uuid[]) AND {in scope: connection_id}
