-- Leaves, beside the scope, the chunks of documents of some source types, in a walk of an HNSW index: each document that it
-- meets is looked up, so that few of a large scope's are read, and the walk keeps its order.
AND (
    SELECT described.source_type = ANY(%(filter_source_types)s::text[])
    FROM retrieval_document AS described
    WHERE described.id = {document}
)
