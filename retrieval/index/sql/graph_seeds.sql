-- The chunks of the seeds in scope, with their text and keys ("seed"), and the links that these chunks state (the link's
-- kind). Shards run both parts at once, as they are in one subquery.
SELECT *
FROM (
    SELECT
        'seed' AS kind, document_id, chunk.ordinal, mentions.keys, mentions.phrases, chunk.text, '' AS name,
        ARRAY[chunk.section_start, chunk.section_end] AS section, 0::bigint AS key
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
    UNION ALL
    SELECT link.kind, link.document_id, link.ordinal, '{}', 0::smallint, link.sentence, link.name, '{}', link.key
    FROM retrieval_chunklink AS link
    WHERE link.document_id = ANY(%(documents)s::uuid[])
        AND (
            (link.ordinal < %(leading)s AND link.document_id = ANY(%(begun)s::uuid[]))
            OR (link.document_id, link.ordinal) IN (
                SELECT * FROM unnest(%(chunk_documents)s::uuid[], %(chunk_ordinals)s::int[])
            )
        )
        AND {in scope: link.connection_id}
) AS found
LIMIT %(limit)s
