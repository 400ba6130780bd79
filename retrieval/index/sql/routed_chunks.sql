-- The chunks in scope that lie in one of some ranges of documents, the nearest to a query vector first, then in order.
SELECT chunk.document_id, chunk.ordinal, 1 - (embedding.vector <=> %(vector)s::halfvec) AS cosine, NULL::real AS rank
FROM retrieval_chunk AS chunk
JOIN unnest(%(documents)s::uuid[], %(starts)s::int[], %(ends)s::int[]) AS routed (document_id, first, last)
    ON routed.document_id = chunk.document_id AND chunk.ordinal BETWEEN routed.first AND routed.last
LEFT JOIN retrieval_embedding AS embedding
    ON embedding.document_id = chunk.document_id
    AND embedding.ordinal = chunk.ordinal
    AND embedding.index_id = %(index)s
WHERE {in scope: chunk.connection_id}
GROUP BY chunk.document_id, chunk.ordinal, embedding.vector
ORDER BY cosine DESC NULLS LAST, chunk.document_id, chunk.ordinal
LIMIT %(depth)s
