-- The subgraph around the seeds, both ends in scope: chunks of the seeds with their text and keys ("seed"), the names that
-- these keys belong to ("name"), other chunks that hold a phrase of the seeds which stands in few ("holder"), and the
-- documents that links stated in the seeds lead to (the link's kind, with the document that states it as its source).
WITH seeds AS MATERIALIZED (
    SELECT
        chunk.document_id, chunk.ordinal, chunk.text, chunk.section_start, chunk.section_end, mentions.keys, mentions.phrases
    FROM retrieval_chunkmentions AS mentions
    JOIN retrieval_chunk AS chunk USING (document_id, ordinal)
    WHERE mentions.document_id = ANY(%(documents)s::uuid[])
        AND (
            (mentions.ordinal < %(leading)s AND mentions.document_id = ANY(%(begun)s::uuid[]))
            OR (mentions.document_id, mentions.ordinal) IN (
                SELECT * FROM unnest(%(chunk_documents)s::uuid[], %(chunk_ordinals)s::int[])
            )
        )
        AND {in scope: mentions.connection_id}
        AND {in scope: chunk.connection_id}
),
spoken_of AS MATERIALIZED (
    SELECT DISTINCT key FROM seeds CROSS JOIN unnest(keys) AS key
),
spoken AS MATERIALIZED (
    SELECT DISTINCT key FROM seeds CROSS JOIN unnest(keys[1:phrases]) AS key WHERE %(with_shared)s
),
common AS MATERIALIZED (
    -- What stands in thousands of chunks is shared by more than a few, and takes long to look up: it was counted before.
    SELECT key
    FROM spoken
    JOIN retrieval_commonmention AS counted USING (key)
    WHERE {in scope: counted.connection_id}
    GROUP BY key
    HAVING sum(counted.chunks) > %(common)s
),
phrases AS MATERIALIZED (
    SELECT key FROM spoken WHERE key NOT IN (SELECT key FROM common)
),
stated AS MATERIALIZED (
    SELECT link.document_id, link.ordinal, link.kind, link.key, link.name, link.sentence
    FROM seeds
    JOIN retrieval_chunklink AS link USING (document_id, ordinal)
    WHERE {in scope: link.connection_id}
),
met AS (
    SELECT stated_of.key, named.document_id, named.quality
    FROM (SELECT DISTINCT key FROM stated) AS stated_of
    CROSS JOIN LATERAL (
        SELECT document_id, quality
        FROM retrieval_documentname
        WHERE key = stated_of.key AND {in scope: connection_id}
        LIMIT %(bearers)s
    ) AS named
),
bearers AS (
    SELECT spoken_of.key, named.document_id, named.name, named.quality
    FROM spoken_of
    CROSS JOIN LATERAL (
        SELECT document_id, name, quality
        FROM retrieval_documentname
        WHERE key = spoken_of.key AND {in scope: connection_id}
        LIMIT %(bearers)s
    ) AS named
),
holders AS (
    SELECT phrases.key, held.document_id, held.ordinal
    FROM phrases
    CROSS JOIN LATERAL (
        SELECT document_id, ordinal
        FROM retrieval_chunkmentions
        WHERE keys @> ARRAY[phrases.key] AND {in scope: connection_id}
        LIMIT %(holders)s
    ) AS held
)
SELECT
    'seed' AS kind, document_id, ordinal, keys, phrases, text, NULL AS name, NULL::float8 AS quality,
    NULL::uuid AS source, ARRAY[section_start, section_end] AS section, NULL::bigint AS key
FROM seeds
UNION ALL
SELECT stated.kind, met.document_id, stated.ordinal, NULL, NULL, stated.sentence, stated.name, met.quality,
    stated.document_id, NULL, stated.key
FROM stated
JOIN met USING (key)
UNION ALL
SELECT 'name', document_id, NULL, NULL, NULL, NULL, name, quality, NULL, NULL, NULL
FROM bearers
UNION ALL
-- Thousands, of which few become links: their ids stay text.
SELECT 'holder', NULL, ordinal, NULL, NULL, NULL, document_id::text, NULL, NULL, NULL, key
FROM holders
LIMIT %(limit)s
