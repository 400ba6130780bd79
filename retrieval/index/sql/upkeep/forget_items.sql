-- Forgets what earlier syncs said of documents that are being deleted: their failures and the problems that are listed.
WITH failures AS (
    DELETE FROM retrieval_syncitem WHERE document_id = ANY(%(documents)s::uuid[]) AND state = 'failed'
)
DELETE FROM retrieval_syncproblem AS problem
USING retrieval_document AS document
WHERE document.id = ANY(%(documents)s::uuid[])
    AND problem.connection_id = document.connection_id
    AND problem.external_id = document.external_id
