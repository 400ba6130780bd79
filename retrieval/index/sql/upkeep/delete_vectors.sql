-- Deletes a part of an embedding index's vectors.
DELETE FROM retrieval_embedding
WHERE ctid = ANY(ARRAY(SELECT ctid FROM retrieval_embedding WHERE index_id = %(index)s LIMIT %(limit)s))
