-- Appends how many chunks of these documents hold each lexeme (the empty one counts the chunks), signed.
INSERT INTO retrieval_termfrequency (connection_id, lexeme, chunks)
SELECT connection_id, lexeme, %(sign)s * count(*)
FROM retrieval_chunk
CROSS JOIN LATERAL unnest(array_append(tsvector_to_array(search), '')) AS lexeme
WHERE document_id = ANY(%(documents)s)
GROUP BY connection_id, lexeme
