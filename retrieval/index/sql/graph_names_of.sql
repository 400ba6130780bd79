-- Every name in scope of these documents, without their addresses.
SELECT document_id, name, quality, key
FROM retrieval_documentname
WHERE document_id = ANY(%(documents)s::uuid[]) AND {in scope: connection_id} AND kind <> 'address'
