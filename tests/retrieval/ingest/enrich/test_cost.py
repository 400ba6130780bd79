from retrieval.ingest.enrich.services import estimate


def test_a_cost_is_the_tokens_of_both_ways_at_their_prices():
    # 3 requests: 1000 + 2000 + 3000 tokens sent at 0.50, 3 * 90 answered at 2.00 a million.
    cost = estimate([1000, 2000, 3000], waiting=9, chunks=3, prices=(0.5, 2.0))
    assert (cost.requests, cost.tokens_sent, cost.tokens_answered) == (3, 6000, 270)
    assert cost.price == (6000 * 0.5 + 270 * 2.0) / 1e6


def test_without_a_price_there_is_none():
    assert estimate([10], waiting=1, chunks=1, prices=(0.0, 0.0)).price is None
