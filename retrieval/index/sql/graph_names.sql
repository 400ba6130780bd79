-- The names in scope with these keys, a few documents of each key.
WITH found AS (
    SELECT asked.key, named.document_id, named.name, named.quality
    FROM unnest(%(keys)s::bigint[]) AS asked (key)
    CROSS JOIN LATERAL (
        SELECT document_id, name, quality
        FROM retrieval_documentname
        WHERE key = asked.key AND {in scope: connection_id}
        LIMIT %(limit)s
    ) AS named
)
SELECT document_id, name, quality
FROM found
