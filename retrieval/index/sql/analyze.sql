-- The query's lexemes in each language of the scope, with the chunks in scope that hold each, where its words stand, and
-- the query's syntax as that language reads it. The row with the empty lexeme counts the chunks in scope.
WITH languages AS NOT MATERIALIZED (
    SELECT name, name::regconfig AS config FROM unnest(%(languages)s::text[]) AS given (name)
),
lexemes AS NOT MATERIALIZED (
    SELECT languages.name, word.lexeme, word.positions AS places
    FROM languages
    CROSS JOIN LATERAL unnest(to_tsvector(languages.config, %(text)s)) AS word
    UNION ALL
    SELECT '', '', '{}'
),
counts AS (
    -- Grouped before the outer join, for which shards would send all of their counts.
    SELECT frequency.lexeme, sum(frequency.chunks) AS chunks
    FROM (SELECT DISTINCT lexeme FROM lexemes) AS asked
    JOIN retrieval_termfrequency AS frequency USING (lexeme)
    WHERE {in scope: frequency.connection_id}
    GROUP BY frequency.lexeme
)
SELECT
    lexemes.name AS language,
    lexemes.lexeme,
    lexemes.places,
    coalesce(counts.chunks, 0)::bigint AS chunks,
    as_written.tsquery::text AS as_written,
    querytree(as_written.tsquery) NOT IN ('', 'T') AS is_indexable
FROM lexemes
LEFT JOIN languages USING (name)
LEFT JOIN LATERAL websearch_to_tsquery(languages.config, %(operators)s) AS as_written (tsquery) ON true
LEFT JOIN counts USING (lexeme)
ORDER BY lexemes.name, lexemes.lexeme
