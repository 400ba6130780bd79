"""Four times the pool asks at once, on real threads and a real server: nobody waits past its budget."""

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2
import pytest
from django.db import connection

from corecube.access import Principal
from corecube.database import connections_in_use, fit, max_connections, process_limit, release_connection
from corecube.errors import OverloadedError
from retrieval.engine.admission import Admission, ProcessHooks
from retrieval.engine.admission_ladder import PoolConfig, Purpose, Refusal
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search
from tests.race import until

pytestmark = pytest.mark.django_db(transaction=True)
SMALL, WHOLE = PoolConfig(connections=32), PoolConfig()


@pytest.fixture
def pool_of():
    """Return a way to give this process's pool another size, which it has for the test."""
    connection.ensure_connection()
    pool = connection.pool
    before = pool.min_size, pool.max_size

    def resize(size):
        pool.resize(1, size)
        return pool

    yield resize
    connection.close()
    until(lambda: connections_in_use() == 0)
    pool.resize(*before)


@contextmanager
def at_work(count):
    """Let so many others hold a connection each."""
    over, begun = threading.Event(), threading.Barrier(count + 1, timeout=30)

    def hold():
        connection.ensure_connection()
        begun.wait()
        over.wait(60)
        connection.close()

    with ThreadPoolExecutor(count) as threads:
        try:
            for _ in range(count):
                threads.submit(hold)
            begun.wait()
            yield
        finally:
            over.set()


def admission_of(sizes, **options):
    world = ProcessHooks(active=connections_in_use, release_connection=release_connection)
    return Admission(sizes, world=world, **options)


@dataclass
class Asked:
    """What became of one query."""

    reason: str = ""
    waited: float = 0.0


def asked_at_once(admission, many, *, work, budget):
    """Return what became of so many queries that take `work` seconds, sent in the same instant."""
    together = threading.Barrier(many, timeout=60)

    def ask(number):
        purpose = Purpose.RECOVERY if number % 16 == 0 else Purpose.PRIMARY
        together.wait()
        asked = Asked()
        try:
            with admission.query(purpose, budget_seconds=budget) as asked.waited, connection.cursor() as cursor:
                cursor.execute("SELECT pg_sleep(%s)", [work])
        except OverloadedError as error:
            asked.reason = error.reason
        finally:
            connection.close()
        return asked

    with ThreadPoolExecutor(many) as threads:
        return list(threads.map(ask, range(many)))


@pytest.mark.parametrize("sizes", [SMALL, WHOLE], ids=["32", "96"])
@pytest.mark.parametrize(("work", "budget"), [(0.01, 30.0), (0.2, 0.5)], ids=["all-in-time", "too-many"])
def test_four_times_the_pool(pool_of, sizes, work, budget):
    pool = pool_of(sizes.connections)
    admission, many = admission_of(sizes), 4 * sizes.connections
    # What any of them raises beside a refusal fails the test.
    done = asked_at_once(admission, many, work=work, budget=budget)
    begun = [it for it in done if not it.reason]
    load = admission.load()
    assert all(it.waited < budget for it in begun)
    assert (load.admitted, sum(load.refused.values())) == (len(begun), many - len(begun))
    assert (load.held, load.recovery_held, load.waiting, admission.wanted) == (0, 0, 0, 0)
    if budget == 0.5:
        # Sixteen at a time, 0.2 s each, half a second: there is time for two or three rounds.
        assert 16 <= len(begun) < many
        assert {it.reason for it in done} <= {"", Refusal.BUDGET_OVER, Refusal.QUEUE}
    else:
        assert len(begun) == many
    until(lambda: connections_in_use() == 0)
    assert pool.get_stats()["pool_size"] <= sizes.connections


def test_the_rungs_by_connections_that_are_really_at_work(pool_of):
    pool_of(96)
    admission = admission_of(WHOLE)

    def reason(purpose=Purpose.PRIMARY, seconds=15.0):
        try:
            with admission.query(purpose, budget_seconds=seconds), connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except OverloadedError as error:
            return error.reason

    connection.close()
    with at_work(75):
        assert (admission.load().active, reason(seconds=1.0)) == (75, None)
        with at_work(9):
            assert (reason(), reason(Purpose.DIVERSITY)) == (Refusal.HARD_REJECT, None)
            with at_work(4):
                assert (reason(Purpose.DIVERSITY, 11), reason(Purpose.RECOVERY)) == (Refusal.SHORT_BUDGET, None)
                assert admission.skips_recovery()
        connection.close()
        assert (admission.load().active, reason()) == (75, None)
    until(lambda: admission.load().active == 0)
    connection.close()


def test_a_pool_holds_no_more_than_its_server_has_room_for(pool_of):
    assert (process_limit(97), process_limit(10)) == (81, 4)
    pool = pool_of(1000)
    connection.close()
    from corecube import database as module

    module._fitted.pop(pool)
    connection.ensure_connection()
    assert pool.max_size == max_connections() == 256 - 3 - 16
    fit(connection)
    assert pool.max_size == 237


def test_a_search_that_must_wait_for_too_long_is_refused_and_the_next_one_found(pool_of, world, monkeypatch):
    pool_of(32)
    small = admission_of(SMALL, turns=1)
    monkeypatch.setattr(runtime, "admission", lambda: small)
    with small.query(budget_seconds=1.0), pytest.raises(OverloadedError):
        search(SearchRequest(text="rollback", budget_seconds=0.05), principal=Principal(world.alice))
    assert search(SearchRequest(text="rollback"), principal=Principal(world.alice)).hits


@pytest.fixture
def asking(server, world, pool_of, monkeypatch):
    """Return a way to send so many searches at once to a server with a small pool, as Alice's program."""
    pool_of(32)
    small = admission_of(SMALL, turns=4)
    monkeypatch.setattr(runtime, "admission", lambda: small)
    headers = {"Authorization": f"Bearer {world.key('alice')}"}
    connection.close()

    def ask(count):
        async def send():
            limits = httpx2.Limits(max_connections=count)
            async with httpx2.AsyncClient(
                base_url=server, headers=headers, timeout=120, limits=limits, trust_env=False
            ) as client:
                ask = ({"query": f"rollback {number}"} for number in range(count))
                return await asyncio.gather(*(client.post("/api/v1/search", json=body) for body in ask))

        return asyncio.run(send())

    return ask


def test_programs_are_refused_at_once_and_told_when_to_ask_again(asking):
    with at_work(28):
        answers = asking(3)
    assert [answer.status_code for answer in answers] == [429] * 3
    error = answers[0].json()["error"]
    assert (error["code"], error["type"]) == ("overloaded", "rate_limit_error")
    assert 1 <= int(answers[0].headers["retry-after"]) <= 30
    assert "x-should-retry" not in answers[0].headers
    assert [answer.status_code for answer in asking(3)] == [200] * 3


def test_a_crowd_of_programs_is_answered_or_refused(asking):
    answers = asking(128)
    statuses = Counter(answer.status_code for answer in answers)
    assert statuses.keys() <= {200, 429}
    assert statuses[200]
    answered = [answer.json() for answer in answers if answer.status_code == 200]
    # On a busy machine the time of one that was let in may be up before it has found anything, and then it says so.
    assert all(it["hits"] or it["degraded"] for it in answered)
    assert any(it["hits"] for it in answered)
    until(lambda: connections_in_use() == 0)
