-- Deletes an embedding index's vectors of some documents.
DELETE FROM retrieval_embedding
WHERE
    index_id = %(index)s
    AND document_id IN (SELECT document_id FROM retrieval_embedding WHERE index_id = %(index)s LIMIT %(limit)s)
