-- The place of one chunk among those in scope by their nearness to a query vector, in the order of `dense_exact.sql`, and
-- how many there are; no row for a chunk without a vector.
WITH probed AS MATERIALIZED (
    SELECT document_id, ordinal, vector <=> %(vector)s::halfvec AS distance
    FROM retrieval_embedding
    WHERE
        document_id = %(document)s AND ordinal = %(ordinal)s
        AND index_id = %(index)s AND {in scope: connection_id}
)
SELECT
    count(*) FILTER (
        WHERE (compared.distance, compared.document_id, compared.ordinal)
            < (probed.distance, probed.document_id, probed.ordinal)
    ) + 1 AS rank,
    count(*) AS among
FROM probed
CROSS JOIN (
    SELECT document_id, ordinal, vector <=> %(vector)s::halfvec AS distance
    FROM retrieval_embedding
    WHERE index_id = %(index)s AND {in scope: connection_id}
) AS compared
GROUP BY probed.document_id, probed.ordinal
