-- Leaves, beside the scope, the chunks of documents that a request's filter keeps. Only remembered items have a project,
-- a type and a moment when they happened. `IS TRUE` keeps it a filter on what an index returns, in the index's order.
AND (
    {document} IN (
        SELECT document.id
        FROM retrieval_document AS document
        WHERE
            {in scope: document.connection_id}
            AND (
                %(kept_since)s::timestamptz IS NULL
                OR coalesce(document.modified_at, document.synced_at) >= %(kept_since)s::timestamptz
            )
            AND (
                NOT document.metadata ? 'memory_kind'
                OR (
                    (
                        %(kept_until)s::timestamptz IS NULL
                        OR coalesce(document.modified_at, document.synced_at) <= %(kept_until)s::timestamptz
                    )
                    AND (%(kept_project)s = '' OR document.metadata ->> 'memory_project' IN ('', %(kept_project)s))
                    AND (%(kept_kinds)s::text[] = '{}' OR document.metadata ->> 'memory_kind' = ANY(%(kept_kinds)s::text[]))
                )
            )
    )
) IS TRUE
