-- Leaves, beside the scope, the chunks of documents that a request's filter keeps. Only remembered items have a project,
-- a type and a moment when they happened. `IS TRUE` keeps it a filter on what an index returns, in the index's order.
AND (
    {document} IN (
        SELECT document.id
        FROM retrieval_document AS document
        WHERE
            {in scope: document.connection_id}
            AND (
                %(filter_since)s::timestamptz IS NULL
                OR coalesce(document.modified_at, document.synced_at) >= %(filter_since)s::timestamptz
            )
            AND (
                NOT document.metadata ? 'memory_kind'
                OR (
                    (
                        %(filter_until)s::timestamptz IS NULL
                        OR coalesce(document.modified_at, document.synced_at) <= %(filter_until)s::timestamptz
                    )
                    AND (%(filter_project)s = '' OR document.metadata ->> 'memory_project' IN ('', %(filter_project)s))
                    AND (%(filter_kinds)s::text[] = '{}' OR document.metadata ->> 'memory_kind' = ANY(%(filter_kinds)s::text[]))
                )
            )
    )
) IS TRUE
