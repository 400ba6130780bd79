-- In how many chunks in scope each of these keys stands, counted no further than `most`. What is known to stand in so many
-- from when the connections in scope were last tidied is not counted again, as that takes long.
WITH common AS MATERIALIZED (
    SELECT key
    FROM retrieval_commonmention
    WHERE key = ANY(%(keys)s::bigint[]) AND {in scope: connection_id}
    GROUP BY key
    HAVING sum(chunks) >= %(limit)s
)
SELECT asked.key, CASE
    WHEN asked.key IN (SELECT key FROM common) THEN %(limit)s
    ELSE (
        SELECT count(*)
        FROM (
            SELECT
            FROM retrieval_chunkmentions
            WHERE keys @> ARRAY[asked.key] AND {in scope: connection_id}
            LIMIT %(limit)s
        ) AS held
    )
END AS chunks
FROM unnest(%(keys)s::bigint[]) AS asked (key)
