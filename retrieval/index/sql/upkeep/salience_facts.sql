-- Of every chunk of these documents: its place, and which share of the document's distinctive terms (by idf), of the
-- title's and of its headings' terms stands in its text; NULL for a share of nothing. See retrieval/index/salience.py.
WITH texts AS MATERIALIZED (
    SELECT
        document_id,
        ordinal,
        tsvector_to_array(ts_filter(search, '{a}')) AS title,
        tsvector_to_array(ts_filter(search, '{b}')) AS headings,
        ts_filter(search, '{c}') AS words
    FROM retrieval_chunk
    WHERE document_id = ANY(%(documents)s)
),
used AS MATERIALIZED (
    SELECT document_id, ordinal, word.lexeme, cardinality(word.positions) AS times
    FROM texts
    CROSS JOIN LATERAL unnest(words) AS word
),
counted AS (
    SELECT document_id, lexeme, sum(times) AS times
    FROM used
    GROUP BY document_id, lexeme
),
known AS MATERIALIZED (
    -- Decimal, so that sums are the same in whatever order their parts come.
    SELECT lexeme, round(ln(1 + (
        SELECT sum(chunks) FROM retrieval_termfrequency WHERE connection_id = %(connection)s AND lexeme = ''
    )::float8 / sum(chunks))::numeric, 6) AS idf
    FROM retrieval_termfrequency
    WHERE connection_id = %(connection)s AND lexeme IN (SELECT lexeme FROM counted)
    GROUP BY lexeme
    HAVING sum(chunks) > 0
),
ranked AS (
    SELECT document_id, lexeme, idf, row_number() OVER (PARTITION BY document_id ORDER BY times * idf DESC, lexeme) AS place
    FROM counted
    JOIN known USING (lexeme)
),
distinctive AS MATERIALIZED (
    SELECT document_id, lexeme, idf, sum(idf) OVER (PARTITION BY document_id) AS of_all
    FROM ranked
    WHERE place <= %(limit)s
),
held AS (
    SELECT document_id, ordinal, sum(idf) / min(of_all) AS share
    FROM used
    JOIN distinctive USING (document_id, lexeme)
    GROUP BY document_id, ordinal
)
SELECT
    document_id,
    ordinal,
    row_number() OVER (PARTITION BY document_id ORDER BY ordinal) - 1,
    count(*) OVER (PARTITION BY document_id),
    CASE WHEN document_id IN (SELECT document_id FROM distinctive) THEN coalesce(held.share, 0)::float8 END,
    (SELECT avg((tsvector_to_array(words) @> ARRAY[term])::int::float8) FROM unnest(title) AS term),
    (SELECT avg((tsvector_to_array(words) @> ARRAY[term])::int::float8) FROM unnest(headings) AS term)
FROM texts
LEFT JOIN held USING (document_id, ordinal)
ORDER BY document_id, ordinal
