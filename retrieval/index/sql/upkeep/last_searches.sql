-- The last ordinary searches of each compartment in a period: its place, from 1, and what fell back or was cut short.
SELECT asked.place, last.degraded
FROM jsonb_array_elements(%(compartments)s::jsonb) WITH ORDINALITY AS asked (connections, place)
CROSS JOIN LATERAL (
    SELECT degraded
    FROM retrieval_searchrecord AS record
    WHERE
        record.at >= %(since)s
        AND record.is_ordinary
        AND EXISTS (
            SELECT
            FROM jsonb_array_elements(asked.connections) AS own (connection)
            WHERE record.connection_ids @> own.connection
        )
    ORDER BY record.at DESC, record.id DESC
    LIMIT %(limit)s
) AS last
