-- In how many chunks in scope each lexeme occurs; one that occurs in none has no row.
SELECT frequency.lexeme, sum(frequency.chunks)::bigint AS chunks
FROM retrieval_termfrequency AS frequency
WHERE frequency.lexeme = ANY(%(lexemes)s) AND {in scope: frequency.connection_id}
GROUP BY frequency.lexeme
