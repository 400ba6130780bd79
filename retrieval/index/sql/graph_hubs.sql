-- In how many chunks in scope each of these keys occurs, where it occurs in any; one node counts no further than `limit`.
-- What is known to stand in so many from when the connections in scope were last tidied is not counted again, as that
-- takes long.
WITH common AS MATERIALIZED (
    SELECT key
    FROM retrieval_commonmention
    WHERE key = ANY(%(keys)s::bigint[]) AND {in scope: connection_id}
    GROUP BY key
    HAVING sum(chunks) >= %(limit)s
)
SELECT asked.key, count(*) AS chunks
FROM unnest(%(keys)s::bigint[]) AS asked (key)
CROSS JOIN LATERAL (
    SELECT document_id
    FROM retrieval_chunkmentions
    WHERE keys @> ARRAY[asked.key] AND {in scope: connection_id}
    LIMIT %(limit)s -- on one node
) AS mentions
WHERE asked.key NOT IN (SELECT key FROM common)
GROUP BY asked.key
UNION ALL
SELECT key, %(limit)s
FROM common
