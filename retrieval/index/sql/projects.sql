-- The projects of the remembered items in these connections of the scope.
SELECT DISTINCT document.metadata ->> 'memory_project' AS project
FROM retrieval_document AS document
WHERE
    document.connection_id = ANY(%(memories)s::bigint[]) AND {in scope: document.connection_id}
    AND document.metadata ->> 'memory_project' <> ''
LIMIT %(limit)s
