-- The stored vectors of some chunks in scope, in PostgreSQL's binary form: four bytes, then half floats.
SELECT embedding.document_id, embedding.ordinal, halfvec_send(embedding.vector) AS vector
FROM unnest(%(documents)s::uuid[], %(ordinals)s::int[]) AS wanted (document_id, ordinal)
JOIN retrieval_embedding AS embedding USING (document_id, ordinal)
WHERE embedding.index_id = %(index)s AND embedding.connection_id = ANY(%(scope)s)
