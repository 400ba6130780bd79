"""Requests and tokens per minute."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.encoders.remote_encoder import RateLimit


def test_ten_seconds_of_the_rate_go_at_once(service, clock):
    limit = RateLimit(60, service, clock=clock)
    assert [limit.take(1) for _ in range(12)] == [0.0] * 10 + [1.0, 2.0]


def test_a_pause_fills_the_bucket_and_no_more(service, clock):
    limit = RateLimit(60, service, clock=clock)
    assert limit.take(10) == 0.0
    clock.now = 4.0
    assert limit.take(4) == 0.0
    clock.now = 1000.0
    assert limit.take(10) == 0.0
    assert limit.take(1) == 1.0


def test_more_than_the_bucket_holds_is_waited_for(service, clock):
    limit = RateLimit(600, service, clock=clock)
    # 10 a second, 100 at once: 250 are there after 15 seconds.
    assert limit.take(250) == 15.0


def test_nothing_limits_nothing(service, clock):
    limit = RateLimit(0, service, clock=clock)
    assert limit.take(10**9) == 0.0


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(1, 50)), min_size=1, max_size=40))
def test_no_more_goes_than_the_rate_and_one_bucket(steps):
    now = [0.0]
    limit = RateLimit(120, clock=lambda: now[0])
    used = []
    for pause, amount in steps:
        now[0] += pause
        used.append((now[0] + limit.take(amount), amount))
    end = max(moment for moment, _ in used)
    assert sum(amount for _, amount in used) <= 20 + 2 * end + 1e-6
