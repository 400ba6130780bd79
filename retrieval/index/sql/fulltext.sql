-- The chunks in scope that match a tsquery, best first, and how many there are: of more than can be scored, only so many.
-- The score is the sum of `score.sql` over the terms of the query, or `score_cover.sql`.
WITH matched AS MATERIALIZED (
    SELECT document_id, ordinal, {score} AS score
    FROM retrieval_chunk
    WHERE search @@ %(match)s::tsquery AND {in scope: connection_id}
    LIMIT %(limit)s + 1
)
SELECT document_id, ordinal, score, count(*) OVER () AS matched
FROM matched
ORDER BY score DESC, document_id, ordinal
LIMIT %(depth)s
