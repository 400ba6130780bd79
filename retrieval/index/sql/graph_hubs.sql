-- In how many chunks in scope each of these keys stands, counted no further than `most`. What the statistics know to stand in
-- a tenth of all chunks is not counted, as that takes long; but they know of every connection, so only whoever sees all of
-- them has their word.
WITH common AS MATERIALIZED (
    SELECT given.key
    FROM pg_stats
    CROSS JOIN LATERAL unnest(most_common_elems::text::bigint[], most_common_elem_freqs) AS given (key, frequency)
    WHERE schemaname = current_schema()
        AND tablename = 'retrieval_chunkmentions'
        AND attname = 'keys'
        AND given.frequency >= 0.1
        AND given.frequency * (
            SELECT reltuples FROM pg_class WHERE oid = 'retrieval_chunkmentions'::regclass
        ) >= %(most)s
        AND NOT EXISTS (SELECT FROM corecube_connection WHERE id <> ALL(%(scope)s))
)
SELECT asked.key, CASE
    WHEN asked.key IN (SELECT key FROM common) THEN %(most)s
    ELSE (
        SELECT count(*)
        FROM (
            SELECT
            FROM retrieval_chunkmentions
            WHERE keys @> ARRAY[asked.key] AND connection_id = ANY(%(scope)s)
            LIMIT %(most)s
        ) AS held
    )
END AS chunks
FROM unnest(%(keys)s::bigint[]) AS asked (key)
