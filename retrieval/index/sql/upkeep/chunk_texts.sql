-- What read models outside PostgreSQL hold of these documents' chunks. No search: whoever reads them applies the scope.
SELECT
    chunk.document_id,
    chunk.ordinal,
    chunk.connection_id,
    document.title,
    chunk.heading_path,
    chunk.text,
    chunk.questions,
    document.modified_at,
    coalesce(document.metadata ->> 'memory_kind', ''),
    coalesce(document.metadata ->> 'memory_project', ''),
    document.source_type,
    chunk.hints,
    chunk.quality
FROM retrieval_chunk AS chunk
JOIN retrieval_document AS document ON document.id = chunk.document_id
WHERE chunk.document_id = ANY(%(documents)s)
ORDER BY chunk.document_id, chunk.ordinal
