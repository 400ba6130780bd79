-- The best of the chunks in scope that match a tsquery too common to score them all: those that match it in title or
-- headings, unless these are too many too, and those of a share of the documents, taken by their ids, which are random.
-- The score is the sum of `score.sql` over the terms of the query.
WITH titled AS MATERIALIZED (
    SELECT document_id, ordinal, {score} AS score
    FROM retrieval_chunk
    WHERE ts_filter(search, '{a,b}') @@ %(match)s::tsquery AND {in scope: connection_id}
    LIMIT %(limit)s + 1
),
matched AS (
    SELECT document_id, ordinal, score FROM titled WHERE (SELECT count(*) FROM titled) <= %(limit)s
    UNION
    SELECT document_id, ordinal, {score} AS score
    FROM retrieval_chunk
    WHERE
        search @@ %(match)s::tsquery AND {in scope: connection_id}
        AND document_id < %(until)s
)
SELECT document_id, ordinal, score, count(*) OVER () AS matched
FROM matched
ORDER BY score DESC, document_id, ordinal
LIMIT %(depth)s
