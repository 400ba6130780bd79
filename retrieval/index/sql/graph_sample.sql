-- The vectors of some chunks of a connection in scope, in binary form.
SELECT halfvec_send(vector) AS vector
FROM retrieval_embedding
WHERE index_id = %(index)s AND connection_id = %(connection)s AND {in scope: connection_id}
LIMIT %(sample)s
