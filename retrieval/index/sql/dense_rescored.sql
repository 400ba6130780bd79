-- The chunks in scope nearest to a query vector among candidates from the vector files and all chunks of documents that
-- changed since these were written, by their whole vectors. At least one row, which says how many documents changed, up
-- to one more than a limit, and whether changes are forgotten that the files lack.
WITH changed AS MATERIALIZED (
    SELECT DISTINCT document_id
    FROM (
        SELECT document_id
        FROM retrieval_outboxentry
        WHERE transaction_id > %(position)s AND {in scope: connection_id}
        LIMIT %(max_changed)s + 1
    ) AS entry
),
compared AS (
    SELECT embedding.document_id, embedding.ordinal, embedding.vector <=> %(vector)s::halfvec AS distance
    FROM unnest(%(documents)s::uuid[], %(ordinals)s::int[]) AS candidate (document_id, ordinal)
    JOIN retrieval_embedding AS embedding USING (document_id, ordinal)
    WHERE embedding.index_id = %(index)s AND {in scope: embedding.connection_id}
    UNION
    SELECT fresh.document_id, fresh.ordinal, fresh.vector <=> %(vector)s::halfvec
    FROM changed
    JOIN retrieval_embedding AS fresh USING (document_id)
    WHERE fresh.index_id = %(index)s AND {in scope: fresh.connection_id}
),
state AS (
    SELECT
        (SELECT count(*) FROM changed) AS changed,
        coalesce((SELECT transaction_id FROM retrieval_readmodel WHERE name = 'outbox'), 0) > %(position)s AS lacks
)
SELECT state.changed, state.lacks, nearest.document_id, nearest.ordinal, 1 - nearest.distance AS score
FROM state
LEFT JOIN (
    SELECT document_id, ordinal, distance FROM compared ORDER BY distance, document_id, ordinal LIMIT %(depth)s
) AS nearest ON true
ORDER BY nearest.distance, nearest.document_id, nearest.ordinal
