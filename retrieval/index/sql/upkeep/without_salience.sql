-- The next documents of a connection, by id, that have chunks without salience, and how many chunks.
SELECT document_id, count(*)
FROM retrieval_chunk
WHERE connection_id = %(connection)s AND salience IS NULL AND document_id > %(after)s
GROUP BY document_id
ORDER BY document_id
LIMIT %(limit)s
