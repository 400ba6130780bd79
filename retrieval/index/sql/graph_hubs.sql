-- In how many chunks in scope each of these keys occurs, where it occurs in any, counted no further than `limit`. What is
-- known to stand in so many from when the connections in scope were last tidied is not counted again, as that takes long.
WITH common AS MATERIALIZED (
    SELECT key
    FROM retrieval_commonmention
    WHERE key = ANY(%(keys)s::bigint[]) AND {in scope: connection_id}
    GROUP BY key
    HAVING sum(chunks) >= %(limit)s
),
rare AS MATERIALIZED (
    SELECT key FROM unnest(%(keys)s::bigint[]) AS asked (key) WHERE key NOT IN (SELECT key FROM common)
),
held AS (
    SELECT rare.key, mentions.document_id
    FROM rare
    CROSS JOIN LATERAL (
        SELECT document_id
        FROM retrieval_chunkmentions
        WHERE keys @> ARRAY[rare.key] AND {in scope: connection_id}
        LIMIT %(limit)s
    ) AS mentions
)
SELECT key, count(*) AS chunks
FROM held
GROUP BY key
UNION ALL
SELECT key, %(limit)s FROM common
