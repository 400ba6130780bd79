-- Where keys of seeds lead to, in scope: the documents with a name ("name"), and the documents with a phrase, each with
-- the first of its chunks that hold it ("holder"). Left out is what more than `sharing` documents share.
-- Names come first.
SELECT
    kind, key, array_agg(document_id::text) AS documents, array_agg(ordinal) AS ordinals, array_agg(name) AS names,
    array_agg(quality) AS qualities
FROM (
    SELECT 'name' AS kind, asked.key, named.document_id, 0 AS ordinal, named.name, named.quality
    FROM unnest(%(keys)s::bigint[]) AS asked (key)
    CROSS JOIN LATERAL (
        SELECT document_id, name, quality
        FROM retrieval_documentname
        WHERE key = asked.key AND {in scope: connection_id}
        LIMIT %(sharing)s + 1 -- on one node
    ) AS named
    UNION ALL
    SELECT 'holder', phrase.key, held.document_id, min(held.ordinal), '', 0
    FROM unnest(%(phrases)s::bigint[]) AS phrase (key)
    CROSS JOIN LATERAL (
        SELECT document_id, ordinal
        FROM retrieval_chunkmentions
        WHERE keys @> ARRAY[phrase.key] AND {in scope: connection_id}
        LIMIT %(holders)s -- on one node
    ) AS held
    GROUP BY phrase.key, held.document_id
) AS found
GROUP BY kind, key
HAVING count(*) <= %(sharing)s
ORDER BY kind DESC, key
LIMIT %(limit)s
