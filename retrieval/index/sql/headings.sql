-- The parts of documents in scope whose headings hold terms of a query, the best first: consecutive chunks under the same
-- headings. The score is the sum of the idf of the terms that they hold.
WITH terms AS MATERIALIZED (
    SELECT term::tsquery AS term, idf FROM unnest(%(terms)s::text[], %(idfs)s::float8[]) AS given (term, idf)
),
matched AS MATERIALIZED (
    SELECT document_id, ordinal, heading_path, search
    FROM retrieval_chunk
    WHERE
        ts_filter(search, '{a,b}') @@ %(match)s::tsquery
        AND {in scope: connection_id}
        AND heading_path <> '{}'
    LIMIT %(limit)s
),
scored AS (
    SELECT
        document_id,
        ordinal,
        heading_path,
        (SELECT sum(terms.idf) FROM terms WHERE matched.search @@ terms.term) AS score,
        ordinal - row_number() OVER (PARTITION BY document_id, heading_path ORDER BY ordinal) AS run
    FROM matched
)
SELECT document_id, heading_path, min(ordinal) AS first, max(ordinal) AS last, max(score) AS score
FROM scored
GROUP BY document_id, heading_path, run
ORDER BY score DESC, document_id, first
LIMIT %(depth)s
