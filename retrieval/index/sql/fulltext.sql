-- The chunks in scope that match a tsquery, by the sum over the query's terms of idf times ts_rank.
WITH terms AS MATERIALIZED (
    SELECT term::tsquery AS term, idf
    FROM unnest(%(terms)s::text[], %(idfs)s::float8[]) AS given (term, idf)
),
matched AS MATERIALIZED (
    SELECT document_id, ordinal, search
    FROM retrieval_chunk
    WHERE search @@ %(match)s::tsquery AND connection_id = ANY(%(scope)s)
),
scored AS (
    SELECT
        matched.document_id,
        matched.ordinal,
        coalesce((
            SELECT sum(terms.idf * ts_rank(%(weights)s::float4[], matched.search, terms.term, 1))
            FROM terms
            WHERE matched.search @@ terms.term
        ), 0) AS score
    FROM matched
)
SELECT document_id, ordinal, score
FROM scored
ORDER BY score DESC, document_id, ordinal
LIMIT %(depth)s
