-- In how many chunks in scope each of these phrases stands, besides those of the documents that it names, counted no
-- further than `limit`. A phrase of stop words alone stands everywhere. Of the chunks with all words of a phrase only so
-- many are searched for it.
WITH asked AS MATERIALIZED (
    SELECT
        given.phrase,
        given.key,
        phraseto_tsquery(language.name::regconfig, given.phrase) AS whole,
        plainto_tsquery(language.name::regconfig, given.phrase) AS words
    FROM unnest(%(phrases)s::text[], %(keys)s::bigint[]) AS given (phrase, key)
    CROSS JOIN unnest(%(languages)s::text[]) AS language (name)
)
SELECT asked.key, max(CASE WHEN numnode(asked.words) = 0 THEN %(limit)s ELSE held.chunks END) AS chunks
FROM asked
CROSS JOIN LATERAL (
    SELECT count(*) AS chunks
    FROM (
        SELECT
        FROM (
            SELECT document_id, search
            FROM retrieval_chunk
            WHERE search @@ asked.words AND {in scope: connection_id}
            LIMIT %(searched)s
        ) AS candidate
        WHERE
            search @@ asked.whole
            AND NOT EXISTS (
                SELECT
                FROM retrieval_documentname AS bearer
                WHERE
                    bearer.document_id = candidate.document_id
                    AND bearer.key = asked.key
                    AND {in scope: bearer.connection_id}
            )
        LIMIT %(limit)s
    ) AS found
) AS held
GROUP BY asked.key
