-- In how many chunks in scope each word occurs, in each language; a stop word has no row.
WITH lexemes AS NOT MATERIALIZED (
    SELECT language.name, given.word, lexeme.lexeme
    FROM unnest(%(languages)s::text[]) AS language (name)
    CROSS JOIN unnest(%(words)s::text[]) AS given (word)
    CROSS JOIN LATERAL unnest(to_tsvector(language.name::regconfig, given.word)) AS lexeme
),
counts AS (
    -- Grouped before the outer join, for which shards would send all of their counts.
    SELECT frequency.lexeme, sum(frequency.chunks) AS chunks
    FROM (SELECT DISTINCT lexeme FROM lexemes) AS asked
    JOIN retrieval_termfrequency AS frequency USING (lexeme)
    WHERE {in scope: frequency.connection_id}
    GROUP BY frequency.lexeme
)
SELECT lexemes.word, coalesce(sum(counts.chunks), 0)::bigint AS chunks
FROM lexemes
LEFT JOIN counts USING (lexeme)
GROUP BY lexemes.name, lexemes.word
