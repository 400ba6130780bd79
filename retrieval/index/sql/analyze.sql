-- The query's lexemes with the chunks in scope that hold each, and the query as websearch reads it.
-- The row with the empty lexeme counts the chunks in scope.
WITH lexemes AS (
    SELECT unnest(tsvector_to_array(to_tsvector(%(config)s::regconfig, %(text)s))) AS lexeme
    UNION ALL
    SELECT ''
)
SELECT
    lexemes.lexeme,
    coalesce(sum(frequency.chunks), 0)::bigint AS chunks,
    as_written.tsquery::text AS as_written,
    querytree(as_written.tsquery) NOT IN ('', 'T') AS is_indexable
FROM lexemes
CROSS JOIN (SELECT websearch_to_tsquery(%(config)s::regconfig, %(text)s)) AS as_written (tsquery)
LEFT JOIN retrieval_termfrequency AS frequency
    ON frequency.lexeme = lexemes.lexeme AND frequency.connection_id = ANY(%(scope)s)
GROUP BY lexemes.lexeme, as_written.tsquery
ORDER BY lexemes.lexeme
