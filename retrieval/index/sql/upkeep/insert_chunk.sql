-- Adds one chunk; its search vector weighs the title A, the heading path B, the text C, questions of a model D.
INSERT INTO retrieval_chunk (
    document_id, ordinal, connection_id, text, heading_path, token_count, content_hash, page_start, page_end,
    row_start, row_end, quality, quality_parts, simhash, section_start, section_end, language, hints, minhash, context_line,
    questions, links, triples, search
)
VALUES (
    %(document)s, %(ordinal)s, %(connection)s, %(text)s, %(heading_path)s::text[], %(token_count)s, %(content_hash)s,
    %(page_start)s, %(page_end)s, %(row_start)s, %(row_end)s, %(quality)s, %(quality_parts)s::jsonb, %(simhash)s,
    %(section_start)s, %(section_end)s, %(language)s, %(hints)s::varchar[], %(minhash)s, %(context_line)s,
    %(questions)s::text[], %(links)s::jsonb, %(triples)s::jsonb,
    setweight(to_tsvector(%(config)s::regconfig, %(title)s), 'A')
    || setweight(to_tsvector(%(config)s::regconfig, %(headings)s), 'B')
    || setweight(to_tsvector(%(config)s::regconfig, %(text)s), 'C')
    || setweight(to_tsvector(%(config)s::regconfig, %(asked)s), 'D')
)
