-- Candidates from the BM25 index that are in scope and match a query's terms, best first by the score of `parts/score.sql`.
SELECT chunk.document_id, chunk.ordinal, matched.score
FROM unnest(%(documents)s::uuid[], %(ordinals)s::int[]) AS candidate (document_id, ordinal)
JOIN retrieval_chunk AS chunk USING (document_id, ordinal)
CROSS JOIN LATERAL (
    SELECT sum(terms.idf * ranked.rank / (ranked.rank + %(saturation)s::float8)) AS score
    FROM unnest(%(terms)s::tsquery[], %(idfs)s::float8[]) AS terms (term, idf)
    CROSS JOIN LATERAL ts_rank(%(weights)s::float4[], chunk.search, terms.term, 1) AS ranked (rank)
    WHERE chunk.search @@ terms.term
) AS matched
WHERE {in scope: chunk.connection_id} AND matched.score IS NOT NULL
ORDER BY matched.score DESC, chunk.document_id, chunk.ordinal
LIMIT %(depth)s
