-- Everything about the pooled chunks, in scope only: facts, both signals, and what each query term adds.
WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest(%(documents)s::uuid[], %(ordinals)s::int[]) AS pooled (document_id, ordinal)
),
terms AS MATERIALIZED (
    SELECT lexeme, term::tsquery AS term, idf
    FROM unnest(%(lexemes)s::text[], %(terms)s::text[], %(idfs)s::float8[]) AS given (lexeme, term, idf)
)
SELECT
    chunk.document_id,
    chunk.ordinal,
    chunk.connection_id,
    document.title,
    document.uri,
    document.source_type,
    chunk.heading_path,
    chunk.text,
    chunk.token_count,
    chunk.content_hash,
    chunk.page_start,
    chunk.page_end,
    document.synced_at,
    document.modified_at,
    chunk.quality,
    chunk.quality_parts,
    chunk.simhash,
    1 - (embedding.vector <=> %(vector)s::halfvec) AS cosine,
    (
        SELECT jsonb_agg(jsonb_build_array(
            terms.lexeme,
            terms.idf,
            terms.idf * ts_rank(%(weights)s::float4[], chunk.search, terms.term, 1),
            CASE
                WHEN ts_filter(chunk.search, '{a}') @@ terms.term THEN 'A'
                WHEN ts_filter(chunk.search, '{b}') @@ terms.term THEN 'B'
                ELSE 'C'
            END
        ) ORDER BY terms.idf DESC, terms.lexeme)
        FROM terms
        WHERE chunk.search @@ terms.term
    ) AS matches
FROM wanted
JOIN retrieval_chunk AS chunk USING (document_id, ordinal)
JOIN retrieval_document AS document ON document.id = wanted.document_id
LEFT JOIN retrieval_embedding AS embedding
    ON embedding.document_id = wanted.document_id
    AND embedding.ordinal = wanted.ordinal
    AND embedding.index_id = %(index)s
WHERE chunk.connection_id = ANY(%(scope)s) AND document.connection_id = ANY(%(scope)s)
