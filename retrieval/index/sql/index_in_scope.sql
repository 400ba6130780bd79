-- One row where an embedding index holds a vector of a chunk in scope.
SELECT 1 AS found FROM retrieval_embedding WHERE index_id = %(index)s AND {in scope: connection_id} LIMIT 1
