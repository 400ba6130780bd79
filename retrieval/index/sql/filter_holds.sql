-- One row where any chunk in scope is left by a request's filter.
SELECT 1 AS found FROM retrieval_chunk WHERE {in scope: connection_id} LIMIT 1
