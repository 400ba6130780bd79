-- Leaves, beside the scope, chunks of at least some quality, where a statement compares all of it without reading the
-- chunks: those below are few, and have an index.
AND NOT EXISTS (
    SELECT
    FROM retrieval_chunk AS held
    WHERE
        held.document_id = {document}
        AND held.ordinal = {ordinal}
        AND {in scope: held.connection_id}
        AND held.quality < %(filter_quality)s
)
