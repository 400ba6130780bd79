-- The projects of the remembered items in scope: only memories have any, and a scope holds one of these at the most.
SELECT DISTINCT document.metadata ->> 'memory_project' AS project
FROM retrieval_memory AS memory
JOIN retrieval_document AS document ON document.connection_id = memory.connection_id
WHERE
    {in scope: memory.connection_id} AND {in scope: document.connection_id}
    AND document.metadata ->> 'memory_project' <> ''
LIMIT %(limit)s
