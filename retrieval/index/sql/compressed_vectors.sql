-- The compressed vectors by a model of some chunks in scope; {table} holds them.
SELECT encoding.document_id, encoding.ordinal, encoding.vectors
FROM unnest(%(documents)s::uuid[], %(ordinals)s::int[]) AS wanted (document_id, ordinal)
JOIN {table} AS encoding USING (document_id, ordinal)
WHERE encoding.model_key = %(model)s AND {in scope: encoding.connection_id}
