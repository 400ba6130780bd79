-- The embedding indexes beside the searched one that hold vectors of chunks in scope.
SELECT kept.id, kept.model, kept.weights, kept.dim, kept.source, kept.mode, kept.scan, kept.scan_dim, kept.oversample
FROM retrieval_embeddingindex AS kept
WHERE
    kept.id <> %(index)s
    AND EXISTS (
        SELECT
        FROM retrieval_embedding AS embedding
        WHERE embedding.index_id = kept.id AND {in scope: embedding.connection_id}
    )
ORDER BY kept.id
