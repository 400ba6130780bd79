-- Leaves, beside the scope, chunks of at least some quality that hold a kind of content, in a walk of an HNSW index: each
-- chunk that it meets is looked up by its key, so that few of a large scope's are read, and the walk keeps its order.
AND (
    SELECT held.quality >= %(filter_quality)s AND (%(filter_hint)s = '' OR %(filter_hint)s = ANY(held.hints))
    FROM retrieval_chunk AS held
    WHERE held.document_id = {document} AND held.ordinal = {ordinal}
)
