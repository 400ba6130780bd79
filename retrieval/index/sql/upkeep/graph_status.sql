-- Of a connection: its chunks, those that were read for names, its names, the keys that its texts hold, and the links that
-- its chunks state.
SELECT
    (SELECT count(*) FROM retrieval_chunk WHERE connection_id = %(connection)s) AS chunks,
    (SELECT count(*) FROM retrieval_chunkmentions WHERE connection_id = %(connection)s) AS mentions,
    (SELECT count(*) FROM retrieval_documentname WHERE connection_id = %(connection)s AND kind <> 'address') AS names,
    (SELECT coalesce(sum(cardinality(keys)), 0) FROM retrieval_chunkmentions WHERE connection_id = %(connection)s) AS keys,
    (SELECT count(*) FROM retrieval_chunklink WHERE connection_id = %(connection)s) AS stated
