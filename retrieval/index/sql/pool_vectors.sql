-- The stored vectors of some chunks in scope, end to end in PostgreSQL's binary form, each four bytes and half floats; and which
-- of the chunks asked for they are of, counted from 1.
SELECT
    array_agg(wanted.place ORDER BY wanted.place) AS places,
    string_agg(halfvec_send(embedding.vector), '' ORDER BY wanted.place) AS vectors
FROM unnest(%(documents)s::uuid[], %(ordinals)s::int[]) WITH ORDINALITY AS wanted (document_id, ordinal, place)
JOIN retrieval_embedding AS embedding USING (document_id, ordinal)
WHERE embedding.index_id = %(index)s AND embedding.connection_id = ANY(%(scope)s)
