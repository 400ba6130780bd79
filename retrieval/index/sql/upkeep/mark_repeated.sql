-- Marks the chunks of a connection whose text stands in many of its documents, and unmarks those where it does no longer.
-- Equal fingerprints find them, equal words prove them. A document counts only when more than half of its text is its
-- own: one that shares most of it is a copy or a version of another. Of each repeated text the copy in the document with
-- the least beside it stays unmarked, so that the text can still be found.
WITH shared AS MATERIALIZED (
    SELECT simhash, count(DISTINCT document_id) AS documents
    FROM retrieval_chunk
    WHERE connection_id = %(connection)s AND simhash <> 0
    GROUP BY simhash
    HAVING count(DISTINCT document_id) > 1
),
holders AS MATERIALIZED (
    SELECT DISTINCT document_id
    FROM retrieval_chunk
    JOIN shared USING (simhash)
    WHERE connection_id = %(connection)s AND documents >= %(minimum)s
),
weighed AS MATERIALIZED (
    SELECT
        document_id,
        sum(token_count) AS tokens,
        2 * coalesce(sum(token_count) FILTER (WHERE shared.simhash IS NULL), 0) > sum(token_count) AS is_own
    FROM retrieval_chunk
    JOIN holders USING (document_id)
    LEFT JOIN shared USING (simhash)
    WHERE connection_id = %(connection)s
    GROUP BY document_id
),
suspects AS MATERIALIZED (
    SELECT
        document_id,
        ordinal,
        is_own,
        chunk.token_count::float8 / greatest(tokens, 1) AS share,
        chunk.content_hash
    FROM retrieval_chunk AS chunk
    JOIN shared USING (simhash)
    JOIN weighed USING (document_id)
    WHERE connection_id = %(connection)s AND documents >= %(minimum)s
),
spelled AS (
    SELECT DISTINCT ON (content_hash) content_hash, document_id, ordinal
    FROM suspects
    ORDER BY content_hash, document_id, ordinal
),
worded AS MATERIALIZED (
    SELECT
        spelled.content_hash,
        md5(regexp_replace(lower(chunk.text), '[[:space:].,;:!?"''()*_`#|]+', ' ', 'g')) AS words
    FROM spelled
    JOIN retrieval_chunk AS chunk USING (document_id, ordinal)
),
repeated AS (
    SELECT words
    FROM suspects
    JOIN worded USING (content_hash)
    WHERE is_own
    GROUP BY words
    HAVING count(DISTINCT document_id) >= %(minimum)s
),
placed AS (
    SELECT
        document_id,
        ordinal,
        is_own,
        row_number() OVER (PARTITION BY words ORDER BY share DESC, document_id, ordinal) AS place
    FROM suspects
    JOIN worded USING (content_hash)
    JOIN repeated USING (words)
),
changes AS (
    SELECT document_id, ordinal, chunk.quality_parts || jsonb_build_object('repeated', %(penalty)s::float8) AS parts
    FROM placed
    JOIN retrieval_chunk AS chunk USING (document_id, ordinal)
    WHERE is_own AND place > 1 AND NOT jsonb_exists(chunk.quality_parts, 'repeated')
    UNION ALL
    SELECT chunk.document_id, chunk.ordinal, chunk.quality_parts - 'repeated'
    FROM retrieval_chunk AS chunk
    LEFT JOIN placed ON
        placed.document_id = chunk.document_id AND placed.ordinal = chunk.ordinal AND is_own AND place > 1
    WHERE chunk.connection_id = %(connection)s
        AND chunk.quality < 1
        AND jsonb_exists(chunk.quality_parts, 'repeated')
        AND placed.place IS NULL
)
UPDATE retrieval_chunk AS chunk
SET
    quality_parts = changes.parts,
    quality = greatest(0, 1 - (
        SELECT coalesce(sum(part.value::numeric), 0) FROM jsonb_each_text(changes.parts) AS part
    ))
FROM changes
WHERE chunk.document_id = changes.document_id AND chunk.ordinal = changes.ordinal
RETURNING chunk.document_id
