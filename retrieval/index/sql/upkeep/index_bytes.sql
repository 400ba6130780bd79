-- Bytes of the HNSW index over the vectors of each of these embedding indexes.
SELECT number, coalesce(pg_relation_size(to_regclass('retrieval_embedding_hnsw_' || number)), 0)
FROM unnest(%(numbers)s::bigint[]) AS number
