-- The vectors of a sample of the scope in binary form: the same number of every connection.
SELECT halfvec_send(embedding.vector) AS vector
FROM unnest(%(sampled)s::bigint[]) AS one (connection_id)
CROSS JOIN LATERAL (
    SELECT vector
    FROM retrieval_embedding
    WHERE index_id = %(index)s AND connection_id = one.connection_id
    LIMIT %(sample)s
) AS embedding
WHERE {in scope: one.connection_id}
