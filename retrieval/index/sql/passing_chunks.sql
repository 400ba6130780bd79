-- Which of the pooled chunks in scope a request's filter leaves.
SELECT chunk.document_id, chunk.ordinal
FROM unnest(%(documents)s::uuid[], %(ordinals)s::int[]) AS pooled (document_id, ordinal)
JOIN retrieval_chunk AS chunk USING (document_id, ordinal)
WHERE {in scope: chunk.connection_id}
