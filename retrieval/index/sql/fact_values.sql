-- The different combinations of some facts that the documents in scope have, as JSON, at most one more than wanted.
SELECT DISTINCT {facts} AS facts
FROM retrieval_document AS document
WHERE {in scope: document.connection_id}
LIMIT %(limit)s + 1
