-- The place of one chunk among those in scope that match a tsquery, in the order of `fulltext.sql`, and how many match; no
-- row for a chunk that does not. The score is the sum of `score.sql` over the terms of the query.
WITH probed AS MATERIALIZED (
    SELECT document_id, ordinal, {score} AS score
    FROM retrieval_chunk
    WHERE
        document_id = %(document)s AND ordinal = %(ordinal)s
        AND search @@ %(match)s::tsquery AND {in scope: connection_id}
)
SELECT
    count(*) FILTER (
        WHERE (-matched.score, matched.document_id, matched.ordinal)
            < (-probed.score, probed.document_id, probed.ordinal)
    ) + 1 AS rank,
    count(*) AS among
FROM probed
CROSS JOIN (
    SELECT document_id, ordinal, {score} AS score
    FROM retrieval_chunk
    WHERE search @@ %(match)s::tsquery AND {in scope: connection_id}
) AS matched
GROUP BY probed.document_id, probed.ordinal
