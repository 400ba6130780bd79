-- Leaves, beside the scope, chunks that hold a kind of content, where a statement compares all of it without reading the
-- chunks.
AND EXISTS (
    SELECT
    FROM retrieval_chunk AS held
    WHERE
        held.document_id = {document}
        AND held.ordinal = {ordinal}
        AND {in scope: held.connection_id}
        AND %(filter_hint)s = ANY(held.hints)
)
