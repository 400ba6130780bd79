-- The names in scope with these keys, a few documents of each key.
SELECT
    asked.key,
    (array_agg(named.document_id::text))[:%(limit)s] AS documents,
    (array_agg(named.name))[:%(limit)s] AS names,
    (array_agg(named.quality))[:%(limit)s] AS qualities
FROM unnest(%(keys)s::bigint[]) AS asked (key)
CROSS JOIN LATERAL (
    SELECT document_id, name, quality
    FROM retrieval_documentname
    WHERE key = asked.key AND {in scope: connection_id}
    LIMIT %(limit)s -- on one node
) AS named
GROUP BY asked.key
