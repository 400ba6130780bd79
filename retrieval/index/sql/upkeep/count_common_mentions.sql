-- Counts in how many chunks of a connection each key stands that stands in at least `fewest`, in the place of what was
-- counted before. Read by document, as the mentions have no index by connection.
WITH counted AS MATERIALIZED (
    SELECT key, count(*) AS chunks
    FROM retrieval_document AS document
    JOIN retrieval_chunkmentions AS mentions ON mentions.document_id = document.id
    CROSS JOIN LATERAL unnest(mentions.keys) AS key
    WHERE document.connection_id = %(connection)s
    GROUP BY key
    HAVING count(*) >= %(minimum)s
),
gone AS (
    DELETE FROM retrieval_commonmention
    WHERE connection_id = %(connection)s AND key NOT IN (SELECT key FROM counted)
)
INSERT INTO retrieval_commonmention AS kept (key, connection_id, chunks)
SELECT key, %(connection)s, chunks
FROM counted
ORDER BY key
ON CONFLICT (key, connection_id) DO UPDATE SET chunks = EXCLUDED.chunks WHERE kept.chunks <> EXCLUDED.chunks
