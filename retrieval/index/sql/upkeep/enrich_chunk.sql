-- Adds what a model wrote to one chunk, unless its text or what stands above it has changed meanwhile; its questions
-- weigh D.
UPDATE retrieval_chunk
SET
    context_line = %(context_line)s,
    questions = %(questions)s::text[],
    triples = %(triples)s::jsonb,
    search = ts_filter(search, '{a,b,c}') || setweight(to_tsvector(%(config)s::regconfig, %(asked)s), 'D')
WHERE document_id = %(document)s AND ordinal = %(ordinal)s AND content_hash = %(content_hash)s
    AND heading_path = %(heading_path)s::text[]
    AND (SELECT title FROM retrieval_document WHERE id = %(document)s) = %(title)s
