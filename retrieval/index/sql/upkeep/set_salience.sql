-- Sets the salience of chunks.
UPDATE retrieval_chunk AS chunk
SET salience = found.salience
FROM unnest(%(documents)s::uuid[], %(ordinals)s::integer[], %(values)s::float8[]) AS found (document_id, ordinal, salience)
WHERE chunk.document_id = found.document_id AND chunk.ordinal = found.ordinal
