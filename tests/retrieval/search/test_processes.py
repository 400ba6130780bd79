"""Two real processes with one Redis: a breaker, a rate, a cache and the turns of searches."""

import signal

import numpy as np
import pytest

from corecube.access import Principal
from corecube.errors import OverloadedError
from retrieval.encoders.breaker import BreakerState, CircuitBreaker
from retrieval.encoders.remote_encoder import RateLimit
from retrieval.encoders.vector_cache import QueryCache, VectorCache
from retrieval.engine.admission import Admission
from retrieval.engine.slots import SharedSlots
from retrieval.errors import RerankBreakerOpenError
from retrieval.operations import health
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.redis_server import other_process

_OTHER = """
import sys
from contextlib import suppress
from corecube.shared_state.store import shared
from retrieval.encoders.breaker import CircuitBreaker
from retrieval.encoders.remote_encoder import RateLimit
from retrieval.encoders.vector_cache import QueryCache, VectorCache
from retrieval.engine.admission import Admission
from retrieval.engine.slots import SharedSlots
from tests.fakes import HashEncoder

breaker, rate = CircuitBreaker("reranker"), RateLimit(60, "embedder")
queries = QueryCache(VectorCache(10, 60, "query_vectors"))
admission = Admission(turns=2, machine_turns=SharedSlots(2, shared(), "turns", lease_seconds=1.0))
running = []

def fail():
    with suppress(ZeroDivisionError), breaker.guarding():
        raise ZeroDivisionError

def encode(text, principal):
    queries.encode(text, encoder=HashEncoder(), principal=principal)

def begin():
    running.append(admission.query(budget_seconds=5.0))
    running[-1].__enter__()

for line in sys.stdin:
    print(eval(line), flush=True)
"""


@pytest.fixture
def other(shared_redis, redis):
    """Return what has another process evaluate an expression."""
    process = other_process(_OTHER, redis.url)

    def ask(expression):
        process.stdin.write(f"{expression}\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    ask.kill = lambda: process.send_signal(signal.SIGKILL)
    yield ask
    process.kill()
    process.communicate()


def test_failures_of_both_open_the_breaker_of_both(other):
    breaker = CircuitBreaker("reranker")
    for _ in range(2):
        other("fail()")
    assert breaker.state is BreakerState.CLOSED
    with pytest.raises(ZeroDivisionError), breaker.guarding():
        raise ZeroDivisionError
    assert other("breaker.state.value") == "open"
    with pytest.raises(RerankBreakerOpenError):
        breaker.call(lambda: pytest.fail("was called"))


def test_both_take_from_one_bucket(other):
    rate = RateLimit(60, "embedder")
    # A burst of ten, then one a second, whoever takes it.
    assert other("rate.take(6)") == "0.0"
    assert rate.take(4) == 0.0
    assert 0.0 < rate.take(1) <= 1.0
    assert 1.0 < float(other("rate.take(1)")) <= 2.0


def test_a_query_is_encoded_once_for_both_and_for_its_asker_alone(other, own_engine):
    other("encode('rollback', 'bob')")
    queries, encoder = QueryCache(VectorCache(10, 60, "query_vectors")), runtime.active.encoder()
    assert queries.get("rollback", encoder=encoder, principal="alice") is None
    found = queries.get("rollback", encoder=encoder, principal="bob")
    assert np.array_equal(found.vector, encoder.encode_query("rollback"))
    with pytest.raises(ValueError, match="read-only"):
        found.vector[0] = 1.0


def test_both_search_in_the_turns_of_one_machine_and_a_killed_one_gives_them_back(other, shared_redis):
    admission = Admission(turns=2, machine_turns=SharedSlots(2, shared_redis, "turns", lease_seconds=1.0))
    other("begin()")
    with admission.query(budget_seconds=0.0):
        assert admission.load().held == 1
    other("begin()")
    with pytest.raises(OverloadedError) as refused, admission.query(budget_seconds=0.1):
        pytest.fail("was admitted")
    assert refused.value.reason == "budget_over"
    assert (admission.load().held, admission.load().waiting) == (0, 0)
    other.kill()
    with admission.query(budget_seconds=20.0) as waited:
        assert waited < 10.0


@pytest.mark.parametrize("fault", ["kill", "freeze"])
def test_a_search_without_redis_finds_the_same_and_health_says_what_is_lost(
    world, shared_redis, redis, fault, settings
):
    settings.CORECUBE_QUERY_CACHE = 100
    runtime._admission.cache_clear()
    runtime._query_cache.cache_clear()

    def find(text):
        return [hit.chunk_id for hit in search(SearchRequest(text=text), principal=Principal(world.bob)).hits]

    found = find("how do we roll back staging?")
    assert found
    assert health.checked_parts()["redis"].state is health.State.OK
    getattr(redis, fault)()
    assert find("how do we roll back staging?") == found
    assert find("roll back") != []
    part = health.checked_parts()["redis"]
    assert (part.state, part.reason[:21]) == (health.State.DEGRADED, "Redis does not answer")
    redis.thaw()
    runtime._admission.cache_clear()
    runtime._query_cache.cache_clear()
