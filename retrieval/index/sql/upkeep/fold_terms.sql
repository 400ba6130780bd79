-- Replaces a connection's term counts by their sums; rows that are appended meanwhile stay for the next time.
WITH taken AS (
    DELETE FROM retrieval_termfrequency WHERE connection_id = %(connection)s
    RETURNING connection_id, lexeme, chunks
)
INSERT INTO retrieval_termfrequency (connection_id, lexeme, chunks)
SELECT connection_id, lexeme, sum(chunks)
FROM taken
GROUP BY connection_id, lexeme
HAVING sum(chunks) <> 0
