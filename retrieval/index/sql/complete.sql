-- Everything about the pooled chunks, in scope only: facts, both signals, and what each query term adds. What is given is
-- read from functions, which shards run themselves: the rows of a CTE would be sent to each machine first.
SELECT
    wanted.place,
    -- The fields of `ChunkFacts`, in their order. Moments are seconds since 1970, which are read in less time.
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
    date_part('epoch', document.synced_at) AS synced_at,
    date_part('epoch', document.modified_at) AS modified_at,
    chunk.quality,
    chunk.quality_parts,
    chunk.simhash,
    chunk.row_start,
    chunk.row_end,
    chunk.salience,
    chunk.minhash,
    coalesce(document.metadata ->> 'memory_kind', '') AS memory_kind,
    coalesce(document.metadata ->> 'status', '') AS status,
    (
        coalesce(document.metadata ->> 'memory_confirmed', '') = 'yes'
        OR (chunk.document_id, chunk.content_hash) IN (
            SELECT document_id, content_hash
            FROM retrieval_judgment
            WHERE document_id = ANY(%(documents)s::uuid[]) AND grade >= 2
        )
    ) AS is_confirmed,
    date_part('epoch', access.accessed_at) AS accessed_at,
    date_part('epoch', access.accessed_before) AS accessed_before,
    {vector} AS vector,
    -- Both signals, and the terms that the chunk holds: places among the query's, shares of the score, fields.
    {cosine} AS cosine,
    ts_rank_cd(%(weights)s::float4[], chunk.search, %(cover)s::tsquery)::float8 AS cover,
    matched.places,
    matched.shares,
    matched.fields
FROM unnest(%(documents)s::uuid[], %(ordinals)s::int[]) WITH ORDINALITY AS wanted (document_id, ordinal, place)
JOIN retrieval_chunk AS chunk USING (document_id, ordinal)
JOIN retrieval_document AS document ON document.id = chunk.document_id
{vectors}
LEFT JOIN retrieval_documentaccess AS access ON access.document_id = chunk.document_id
CROSS JOIN LATERAL (
    SELECT
        coalesce(array_agg(terms.place), '{}') AS places,
        coalesce(array_agg(terms.idf * ranked.rank / (ranked.rank + %(saturation)s::float8)), '{}') AS shares,
        coalesce(array_agg(CASE
            WHEN chunk.search @@ terms.in_title THEN 'A'
            WHEN chunk.search @@ terms.in_heading THEN 'B'
            ELSE 'C'
        END), '{}') AS fields
    FROM unnest(
        %(terms)s::tsquery[], %(in_title)s::tsquery[], %(in_heading)s::tsquery[], %(idfs)s::float8[]
    ) WITH ORDINALITY AS terms (term, in_title, in_heading, idf, place)
    CROSS JOIN LATERAL ts_rank(%(weights)s::float4[], chunk.search, terms.term, 1) AS ranked (rank)
    WHERE chunk.search @@ terms.term
) AS matched
WHERE {in scope: chunk.connection_id} AND {in scope: document.connection_id}
