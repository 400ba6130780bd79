-- Leaves, beside the scope, the chunks of documents of some source types.
AND {document} IN (
    SELECT described.id
    FROM retrieval_document AS described
    WHERE {in scope: described.connection_id} AND described.source_type = ANY(%(filter_source_types)s::text[])
)
