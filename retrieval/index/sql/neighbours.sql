-- What stands around some chunks in scope: the rest of their sections, the chunks beside them, those of the next pages.
WITH hits AS MATERIALIZED (
    SELECT
        wanted.place, chunk.document_id, chunk.ordinal, chunk.page_start, chunk.page_end,
        chunk.section_start, chunk.section_end
    FROM unnest(%(documents)s::uuid[], %(ordinals)s::int[]) WITH ORDINALITY AS wanted (document_id, ordinal, place)
    JOIN retrieval_chunk AS chunk USING (document_id, ordinal)
    WHERE {in scope: chunk.connection_id}
),
before AS MATERIALIZED (
    SELECT hits.place, beyond.ordinal, beyond.is_next
    FROM hits
    CROSS JOIN LATERAL (
        SELECT chunk.ordinal, chunk.page_end >= hits.page_start - 1 AS is_next
        FROM retrieval_chunk AS chunk
        WHERE
            hits.page_start IS NOT NULL
            AND {in scope: chunk.connection_id}
            AND chunk.document_id = hits.document_id
            AND chunk.quality >= %(min_quality)s
            AND chunk.ordinal < hits.ordinal
            AND chunk.page_end < hits.page_start
        ORDER BY ordinal DESC
        LIMIT %(cross_page)s
    ) AS beyond
),
after AS MATERIALIZED (
    SELECT hits.place, beyond.ordinal, beyond.is_next
    FROM hits
    CROSS JOIN LATERAL (
        SELECT chunk.ordinal, chunk.page_start <= hits.page_end + 1 AS is_next
        FROM retrieval_chunk AS chunk
        WHERE
            hits.page_end IS NOT NULL
            AND {in scope: chunk.connection_id}
            AND chunk.document_id = hits.document_id
            AND chunk.quality >= %(min_quality)s
            AND chunk.ordinal > hits.ordinal
            AND chunk.page_start > hits.page_end
        ORDER BY ordinal
        LIMIT %(cross_page)s
    ) AS beyond
),
beside AS MATERIALIZED (
    SELECT hits.place, hits.ordinal AS hit, hits.document_id, nearest.ordinal
    FROM hits
    CROSS JOIN LATERAL (
        SELECT ordinal
        FROM (SELECT * FROM before UNION ALL SELECT * FROM after) AS found
        WHERE is_next AND place = hits.place
        ORDER BY abs(ordinal - hits.ordinal), ordinal
        LIMIT %(cross_page)s
    ) AS nearest
),
around AS MATERIALIZED (
    -- Grouped by the key, so that the chunks are looked up for each hit.
    SELECT hits.place, hits.ordinal AS hit, 'parent' AS relation, section.document_id, section.ordinal
    FROM hits
    CROSS JOIN LATERAL (
        SELECT chunk.document_id, chunk.ordinal
        FROM retrieval_chunk AS chunk
        WHERE
            %(parents)s
            AND {in scope: chunk.connection_id}
            AND chunk.document_id = hits.document_id
            AND chunk.quality >= %(min_quality)s
            AND chunk.ordinal BETWEEN hits.section_start AND hits.section_end
        GROUP BY chunk.document_id, chunk.ordinal
    ) AS section
    WHERE section.ordinal <> hits.ordinal
    UNION ALL
    SELECT hits.place, hits.ordinal, 'sibling', page.document_id, page.ordinal
    FROM hits
    CROSS JOIN LATERAL (
        SELECT chunk.document_id, chunk.ordinal
        FROM retrieval_chunk AS chunk
        WHERE
            {in scope: chunk.connection_id}
            AND chunk.document_id = hits.document_id
            AND chunk.quality >= %(min_quality)s
            AND chunk.ordinal BETWEEN hits.ordinal - %(same_page)s AND hits.ordinal + %(same_page)s
            AND (
                (chunk.page_start <= hits.page_end AND chunk.page_end >= hits.page_start)
                OR (chunk.section_start = hits.section_start AND chunk.section_end = hits.section_end)
            )
        GROUP BY chunk.document_id, chunk.ordinal
    ) AS page
    WHERE page.ordinal <> hits.ordinal
    UNION ALL
    SELECT place, hit, 'cross_page', document_id, ordinal
    FROM beside
)
SELECT
    around.place,
    around.hit,
    around.relation,
    chunk.document_id,
    chunk.ordinal,
    chunk.connection_id,
    document.title,
    document.uri,
    document.source_type,
    chunk.heading_path,
    chunk.text,
    chunk.token_count,
    chunk.content_hash,
    chunk.page_start,
    chunk.page_end,
    chunk.row_start,
    chunk.row_end,
    document.synced_at,
    document.modified_at,
    chunk.quality,
    coalesce(document.metadata ->> 'status', '') AS status
FROM around
JOIN retrieval_chunk AS chunk USING (document_id, ordinal)
JOIN retrieval_document AS document ON document.id = chunk.document_id
WHERE
    {in scope: chunk.connection_id}
    AND {in scope: document.connection_id}
ORDER BY around.place, around.relation, chunk.ordinal
