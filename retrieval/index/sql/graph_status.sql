-- Of a connection: its chunks, those that were read for names, its names, and the keys that its texts hold.
SELECT
    (SELECT count(*) FROM retrieval_chunk WHERE connection_id = %(connection)s) AS chunks,
    (SELECT count(*) FROM retrieval_chunkmentions WHERE connection_id = %(connection)s) AS mentions,
    (SELECT count(*) FROM retrieval_documentname WHERE connection_id = %(connection)s) AS names,
    (SELECT coalesce(sum(cardinality(keys)), 0) FROM retrieval_chunkmentions WHERE connection_id = %(connection)s) AS keys
