-- The query's lexemes with the chunks in scope that hold each, and the tsquery that demands them all.
-- The row with the empty lexeme counts the chunks in scope.
WITH lexemes AS (
    SELECT unnest(tsvector_to_array(to_tsvector(%(config)s::regconfig, %(text)s))) AS lexeme
    UNION ALL
    SELECT ''
)
SELECT
    lexemes.lexeme,
    coalesce(sum(frequency.chunks), 0)::bigint AS chunks,
    websearch_to_tsquery(%(config)s::regconfig, %(text)s)::text AS all_terms
FROM lexemes
LEFT JOIN retrieval_termfrequency AS frequency
    ON frequency.lexeme = lexemes.lexeme AND frequency.connection_id = ANY(%(scope)s)
GROUP BY lexemes.lexeme
ORDER BY lexemes.lexeme
