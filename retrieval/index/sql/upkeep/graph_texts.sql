-- What the names, mentions and links of documents are made of, chunk by chunk.
SELECT document.id, document.connection_id, document.title, document.metadata, document.source_type,
    chunk.ordinal, chunk.text, chunk.heading_path, chunk.links, document.external_id, document.uri, chunk.triples
FROM retrieval_document AS document
JOIN retrieval_chunk AS chunk ON chunk.document_id = document.id
WHERE document.id = ANY(%(documents)s)
ORDER BY document.id, chunk.ordinal
