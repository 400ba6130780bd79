-- What stands around some chunks in scope: the rest of their sections, the chunks beside them, those of the next pages.
WITH hits AS MATERIALIZED (
    SELECT
        wanted.place, chunk.document_id, chunk.ordinal, chunk.page_start, chunk.page_end,
        chunk.section_start, chunk.section_end
    FROM unnest(%(documents)s::uuid[], %(ordinals)s::int[]) WITH ORDINALITY AS wanted (document_id, ordinal, place)
    JOIN retrieval_chunk AS chunk USING (document_id, ordinal)
    WHERE {in scope: chunk.connection_id}
),
around AS MATERIALIZED (
    SELECT hits.document_id, hits.place, hits.ordinal AS hit, found.relation, found.ordinal
    FROM hits
    CROSS JOIN LATERAL (
        SELECT 'parent' AS relation, chunk.ordinal
        FROM retrieval_chunk AS chunk
        WHERE
            %(parents)s
            AND {in scope: chunk.connection_id}
            AND chunk.document_id = hits.document_id
            AND chunk.quality >= %(min_quality)s
            AND chunk.ordinal BETWEEN hits.section_start AND hits.section_end
        UNION ALL
        SELECT 'sibling', chunk.ordinal
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
        UNION ALL
        (
            SELECT 'cross_page', beside.ordinal
            FROM (
                (
                    SELECT chunk.ordinal, chunk.page_end >= hits.page_start - 1 AS is_next
                    FROM retrieval_chunk AS chunk
                    WHERE
                        hits.page_start IS NOT NULL
                        AND {in scope: chunk.connection_id}
                        AND chunk.document_id = hits.document_id
                        AND chunk.quality >= %(min_quality)s
                        AND chunk.ordinal < hits.ordinal
                        AND chunk.page_end < hits.page_start
                    ORDER BY chunk.ordinal DESC
                    LIMIT %(cross_page)s
                )
                UNION ALL
                (
                    SELECT chunk.ordinal, chunk.page_start <= hits.page_end + 1
                    FROM retrieval_chunk AS chunk
                    WHERE
                        hits.page_end IS NOT NULL
                        AND {in scope: chunk.connection_id}
                        AND chunk.document_id = hits.document_id
                        AND chunk.quality >= %(min_quality)s
                        AND chunk.ordinal > hits.ordinal
                        AND chunk.page_start > hits.page_end
                    ORDER BY chunk.ordinal
                    LIMIT %(cross_page)s
                )
            ) AS beside
            WHERE beside.is_next
            ORDER BY abs(beside.ordinal - hits.ordinal), beside.ordinal
            LIMIT %(cross_page)s
        )
    ) AS found
    WHERE found.ordinal <> hits.ordinal
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
JOIN retrieval_document AS document ON document.id = around.document_id
WHERE
    {in scope: chunk.connection_id}
    AND {in scope: document.connection_id}
ORDER BY around.place, around.relation, chunk.ordinal
