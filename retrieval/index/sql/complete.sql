-- Everything about the pooled chunks, in scope only: facts, both signals, and what each query term adds.
WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest(%(documents)s::uuid[], %(ordinals)s::int[]) AS pooled (document_id, ordinal)
),
terms AS MATERIALIZED (
    SELECT
        place, idf, term::tsquery AS term, (term || ':A')::tsquery AS in_title, (term || ':B')::tsquery AS in_heading
    FROM unnest(%(terms)s::text[], %(idfs)s::float8[]) WITH ORDINALITY AS given (term, idf, place)
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
    chunk.row_start,
    chunk.row_end,
    document.synced_at,
    document.modified_at,
    chunk.quality,
    chunk.quality_parts,
    chunk.simhash,
    chunk.salience,
    chunk.minhash,
    coalesce(document.metadata ->> 'memory_kind', '') AS memory_kind,
    coalesce(document.metadata ->> 'status', '') AS status,
    (
        coalesce(document.metadata ->> 'memory_confirmed', '') = 'yes'
        OR EXISTS (
            SELECT
            FROM retrieval_judgment AS judgment
            WHERE
                judgment.document_id = wanted.document_id
                AND judgment.content_hash = chunk.content_hash
                AND judgment.grade >= 2
        )
    ) AS is_confirmed,
    access.accessed_at,
    access.accessed_before,
    {cosine} AS cosine,
    {vector} AS vector,
    ts_rank_cd(%(weights)s::float4[], chunk.search, %(cover)s::tsquery)::float8 AS cover,
    (
        SELECT json_agg(json_build_array(
            terms.place,
            terms.idf * ranked.rank / (ranked.rank + %(saturation)s::float8),
            CASE
                WHEN chunk.search @@ terms.in_title THEN 'A'
                WHEN chunk.search @@ terms.in_heading THEN 'B'
                ELSE 'C'
            END
        ))
        FROM terms
        CROSS JOIN LATERAL ts_rank(%(weights)s::float4[], chunk.search, terms.term, 1) AS ranked (rank)
        WHERE chunk.search @@ terms.term
    ) AS matches
FROM wanted
JOIN retrieval_chunk AS chunk USING (document_id, ordinal)
JOIN retrieval_document AS document ON document.id = wanted.document_id
{vectors}
LEFT JOIN retrieval_documentaccess AS access ON access.document_id = wanted.document_id
WHERE {in scope: chunk.connection_id} AND {in scope: document.connection_id}
