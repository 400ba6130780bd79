-- A row if a word is written, perhaps with an ending, in one of the first chunks in scope that hold its lexeme, in its
-- headings or its title.
WITH held AS MATERIALIZED (
    SELECT document_id, heading_path, text
    FROM retrieval_chunk
    WHERE search @@ %(lexeme)s::tsquery AND {in scope: connection_id}
    LIMIT %(limit)s
)
SELECT TRUE AS is_written
FROM held
JOIN retrieval_document AS document ON document.id = held.document_id
WHERE
    {in scope: document.connection_id}
    AND concat_ws(' ', document.title, array_to_string(held.heading_path, ' '), held.text)
        ~* ('\m' || %(word)s || '\w{0,3}\M')
LIMIT 1
