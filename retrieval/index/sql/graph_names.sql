-- The names in scope with these keys, a few documents of each key, and every name of these documents.
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
SELECT document_id, name, quality, true AS is_asked
FROM found
UNION ALL
SELECT document_id, name, quality, key = ANY(%(keys)s::bigint[])
FROM retrieval_documentname
WHERE document_id = ANY(%(documents)s::uuid[]) AND {in scope: connection_id} AND kind <> 'address'
