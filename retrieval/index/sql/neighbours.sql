-- What stands around some chunks in scope: the rest of their sections, the chunks beside them, those of the next pages.
SELECT
    wanted.place,
    hit.ordinal AS hit,
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
FROM unnest(%(documents)s::uuid[], %(ordinals)s::int[]) WITH ORDINALITY AS wanted (document_id, ordinal, place)
JOIN retrieval_chunk AS hit USING (document_id, ordinal)
CROSS JOIN LATERAL (
    SELECT section.document_id, section.ordinal, 'parent' AS relation
    FROM retrieval_chunk AS section
    WHERE
        %(parents)s
        AND {in scope: section.connection_id}
        AND section.document_id = hit.document_id
        AND section.quality >= %(min_quality)s
        AND section.ordinal BETWEEN hit.section_start AND hit.section_end
        AND section.ordinal <> hit.ordinal
    UNION ALL
    SELECT page.document_id, page.ordinal, 'sibling'
    FROM retrieval_chunk AS page
    WHERE
        {in scope: page.connection_id}
        AND page.document_id = hit.document_id
        AND page.quality >= %(min_quality)s
        AND page.ordinal BETWEEN hit.ordinal - %(same_page)s AND hit.ordinal + %(same_page)s
        AND page.ordinal <> hit.ordinal
        AND (
            (page.page_start <= hit.page_end AND page.page_end >= hit.page_start)
            OR (page.section_start = hit.section_start AND page.section_end = hit.section_end)
        )
    UNION ALL
    SELECT nearest.document_id, nearest.ordinal, 'cross_page'
    FROM (
        SELECT beside.document_id, beside.ordinal
        FROM (
            (
                SELECT before.document_id, before.ordinal, before.page_end >= hit.page_start - 1 AS is_next
                FROM retrieval_chunk AS before
                WHERE
                    hit.page_start IS NOT NULL
                    AND {in scope: before.connection_id}
                    AND before.document_id = hit.document_id
                    AND before.quality >= %(min_quality)s
                    AND before.ordinal < hit.ordinal
                    AND before.page_end < hit.page_start
                ORDER BY before.ordinal DESC
                LIMIT %(cross_page)s
            )
            UNION ALL
            (
                SELECT after.document_id, after.ordinal, after.page_start <= hit.page_end + 1
                FROM retrieval_chunk AS after
                WHERE
                    hit.page_end IS NOT NULL
                    AND {in scope: after.connection_id}
                    AND after.document_id = hit.document_id
                    AND after.quality >= %(min_quality)s
                    AND after.ordinal > hit.ordinal
                    AND after.page_start > hit.page_end
                ORDER BY after.ordinal
                LIMIT %(cross_page)s
            )
        ) AS beside
        WHERE beside.is_next
        ORDER BY abs(beside.ordinal - hit.ordinal), beside.ordinal
        LIMIT %(cross_page)s
    ) AS nearest
) AS around
JOIN retrieval_chunk AS chunk ON chunk.document_id = around.document_id AND chunk.ordinal = around.ordinal
JOIN retrieval_document AS document ON document.id = chunk.document_id
WHERE
    {in scope: hit.connection_id}
    AND {in scope: chunk.connection_id}
    AND {in scope: document.connection_id}
ORDER BY wanted.place, around.relation, chunk.ordinal
