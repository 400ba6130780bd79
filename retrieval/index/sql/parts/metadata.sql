-- Leaves, beside the scope, the chunks of documents whose facts are one of these combinations. `IS TRUE` keeps it a filter
-- on what an index returns, in the index's order.
AND (
    {document} IN (
        SELECT document.id
        FROM retrieval_document AS document
        WHERE {in scope: document.connection_id} AND {facts} = ANY(%(metadata)s::text[])
    )
) IS TRUE
