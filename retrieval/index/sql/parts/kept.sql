-- Leaves, beside the scope, the chunks of documents whose facts are one of these combinations. `IS TRUE` keeps it a filter
-- on what an index returns, in the index's order.
AND (
    {document} IN (
        SELECT document.id
        FROM retrieval_document AS document
        WHERE document.connection_id = ANY(%(scope)s) AND {facts} = ANY(%(kept)s::text[])
    )
) IS TRUE
