-- The next changes that are settled: of transactions after one, and before any that is still at work. All of a
-- transaction's come at once, so that a transaction id says how far a follower is.
SELECT document_id, transaction_id
FROM retrieval_outboxentry
WHERE transaction_id > %(after)s AND transaction_id < %(before)s
ORDER BY transaction_id
FETCH FIRST %(limit)s ROWS WITH TIES
