"""How many requests an API key may send, across processes."""

import threading
import time
from datetime import timedelta

import pytest
from django.db import connections
from django.db.models import F

from corecube import rate_limit
from corecube.errors import RateLimitedError
from corecube.models import ApiKey, User
from tests.redis_server import running_redis, sharing


@pytest.fixture(params=["database", "redis"])
def redis_time(request):
    """Count in the database, and in Redis; return what moves the clock of Redis."""
    moved = [0.0]
    if request.param == "database":
        yield moved
    else:
        with running_redis() as server, sharing(server.url, clock=lambda: time.time() + moved[0]):
            yield moved


@pytest.fixture
def wait(redis_time):
    """Return a function that lets seconds pass."""

    def later(seconds):
        redis_time[0] += seconds
        ApiKey.objects.update(paced_until=F("paced_until") - timedelta(seconds=seconds))

    return later


@pytest.fixture
def key(people, redis_time):
    issued, _ = ApiKey.issue(user=people["bob"], name="robot")
    issued.requests_per_minute = 3
    issued.save()
    return issued


def test_a_key_without_a_limit_may_send_any_number(people, django_assert_num_queries):
    key, _ = ApiKey.issue(user=people["bob"], name="robot")
    with django_assert_num_queries(0):
        rate_limit.take(key)


def test_a_minutes_requests_may_come_at_once_and_no_more(key):
    for _ in range(3):
        rate_limit.take(key)
    with pytest.raises(RateLimitedError) as refused:
        rate_limit.take(key)
    # 3 a minute are 20 s each; the first place is free again 20 s after the first request.
    assert 19 <= refused.value.retry_after_seconds <= 20


def test_a_refused_request_costs_nothing(key):
    for _ in range(3):
        rate_limit.take(key)
    for _ in range(5):
        with pytest.raises(RateLimitedError) as refused:
            rate_limit.take(key)
    assert 19 <= refused.value.retry_after_seconds <= 20


def test_what_is_charged_is_let_in_and_waited_for_later(key):
    rate_limit.take(key)
    rate_limit.charge(key, 7)
    with pytest.raises(RateLimitedError) as refused:
        rate_limit.take(key)
    # Eight requests of 20 s each, of which a minute holds three; one more fits when 40 s of the 160 s are left.
    assert 119 <= refused.value.retry_after_seconds <= 120


@pytest.mark.parametrize("requests", [0, -1])
def test_nothing_is_charged_for_nothing(key, requests):
    rate_limit.charge(key, requests)
    for _ in range(3):
        rate_limit.take(key)


def test_a_key_without_a_limit_is_charged_nothing(people, django_assert_num_queries):
    key, _ = ApiKey.issue(user=people["bob"], name="robot")
    with django_assert_num_queries(0):
        rate_limit.charge(key, 8)


def test_the_bucket_fills_evenly(key, wait):
    for _ in range(3):
        rate_limit.take(key)
    # One place of 20 s each is free then.
    wait(25)
    rate_limit.take(key)
    with pytest.raises(RateLimitedError) as refused:
        rate_limit.take(key)
    assert 14 <= refused.value.retry_after_seconds <= 15


def test_a_long_pause_saves_up_no_more_than_a_minute(key, wait):
    rate_limit.take(key)
    wait(3 * 86_400)
    for _ in range(3):
        rate_limit.take(key)
    with pytest.raises(RateLimitedError):
        rate_limit.take(key)


@pytest.mark.django_db(transaction=True)
def test_processes_count_together(redis_time):
    user = User.objects.create_user("robot-owner")
    key, _ = ApiKey.issue(user=user, name="robot")
    key.requests_per_minute = 7
    key.save()
    allowed, starting = [], threading.Barrier(4)

    def send():
        # A thread has a database connection of its own, as a process has.
        starting.wait()
        for _ in range(5):
            try:
                rate_limit.take(key)
                allowed.append(1)
            except RateLimitedError:
                pass
        connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(allowed) == 7


def test_without_redis_the_database_counts_on(people, redis, shared_redis):
    key, _ = ApiKey.issue(user=people["bob"], name="robot")
    key.requests_per_minute = 2
    key.save()
    rate_limit.take(key)
    redis.kill()
    # The first one finds out, and is counted in memory.
    for _ in range(3):
        rate_limit.take(key)
    assert ApiKey.objects.get().paced_until is not None
    with pytest.raises(RateLimitedError):
        rate_limit.take(key)
