-- A row if a word is written in one of the first chunks in scope that hold its lexeme.
WITH held AS MATERIALIZED (
    SELECT heading_path, text
    FROM retrieval_chunk
    WHERE search @@ %(lexeme)s::tsquery AND {in scope: connection_id}
    LIMIT %(limit)s
)
SELECT TRUE AS is_written
FROM held
WHERE text ~* ('\m' || %(word)s || '\M') OR array_to_string(heading_path, ' ') ~* ('\m' || %(word)s || '\M')
LIMIT 1
