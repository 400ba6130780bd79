-- Notes when documents were last read and how often, those that are there still; a later note never takes time back.
-- What was known before the day (UTC) of the last reading is kept beside it.
INSERT INTO retrieval_documentaccess (document_id, connection_id, accessed_at, times)
SELECT document.id, document.connection_id, noted.accessed_at, noted.times
FROM unnest(%(documents)s::uuid[], %(moments)s::timestamptz[], %(times)s::bigint[]) AS noted (id, accessed_at, times)
JOIN retrieval_document AS document USING (id)
ON CONFLICT (document_id) DO UPDATE SET
    accessed_at = greatest(retrieval_documentaccess.accessed_at, excluded.accessed_at),
    accessed_before = greatest(
        retrieval_documentaccess.accessed_before,
        CASE
            WHEN
                (retrieval_documentaccess.accessed_at AT TIME ZONE 'UTC')::date
                <> (excluded.accessed_at AT TIME ZONE 'UTC')::date
            THEN least(retrieval_documentaccess.accessed_at, excluded.accessed_at)
        END
    ),
    times = retrieval_documentaccess.times + excluded.times
