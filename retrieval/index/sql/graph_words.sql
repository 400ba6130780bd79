-- In how many chunks in scope each word occurs, in each language; a stop word has no row.
SELECT given.word, coalesce(sum(frequency.chunks), 0)::bigint AS chunks
FROM unnest(%(languages)s::text[]) AS language (name)
CROSS JOIN unnest(%(words)s::text[]) AS given (word)
CROSS JOIN LATERAL unnest(to_tsvector(language.name::regconfig, given.word)) AS lexeme
LEFT JOIN retrieval_termfrequency AS frequency
    ON frequency.lexeme = lexeme.lexeme AND {in scope: frequency.connection_id}
GROUP BY language.name, given.word
