-- In how many chunks in scope a phrase stands, besides those of the documents that it names, counted no further than
-- `limit`. A phrase of stop words alone stands everywhere. Of the chunks with all words of the phrase only so many are
-- searched for it on one node; each shard stops at `limit`.
SELECT CASE
    WHEN numnode(plainto_tsquery(%(language)s::regconfig, %(phrase)s)) = 0 THEN %(limit)s
    ELSE count(*)
END AS chunks
FROM (
    SELECT 1
    FROM (
        SELECT document_id, search @@ phraseto_tsquery(%(language)s::regconfig, %(phrase)s) AS is_whole
        FROM retrieval_chunk
        WHERE search @@ plainto_tsquery(%(language)s::regconfig, %(phrase)s) AND {in scope: connection_id}
        LIMIT %(searched)s -- on one node
    ) AS candidate
    WHERE
        is_whole
        AND NOT EXISTS (
            SELECT
            FROM retrieval_documentname AS named
            WHERE named.document_id = candidate.document_id AND named.key = %(key)s AND {in scope: named.connection_id}
        )
    LIMIT %(limit)s
) AS found
