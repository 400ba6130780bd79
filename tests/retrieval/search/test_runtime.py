import threading
from dataclasses import replace

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from retrieval.errors import RerankError, RerankTimeoutError
from retrieval.models import RouteExample
from retrieval.presets.helix import route_examples
from retrieval.presets.helix.router.routes import RouterSource
from retrieval.search import runtime
from retrieval.search.runtime import DatabaseThreads, InlineExecutor, OwnThreads, RerankThreads

_READ = ("retrieval_embeddingindex", "retrieval_routeexample", "retrieval_calibration")


@pytest.fixture
def threads():
    executor = DatabaseThreads(2, thread_name_prefix="leg")
    yield executor
    executor.shutdown()


def test_a_call_runs_beside_its_caller(threads):
    assert threads.submit(threading.current_thread).result() is not threading.current_thread()


def test_while_all_threads_are_busy_a_call_runs_in_the_callers_thread(threads):
    leave = threading.Event()
    busy = [threads.submit(leave.wait, 30) for _ in range(2)]
    assert threads.submit(threading.current_thread).result(timeout=0) is threading.current_thread()
    leave.set()
    assert [future.result() for future in busy] == [True, True]
    assert threads.submit(threading.current_thread).result() is not threading.current_thread()


def test_while_calls_of_rerankers_hold_all_threads_the_next_is_refused_at_once():
    leave = threading.Event()
    with RerankThreads(1, thread_name_prefix="rerank") as threads:
        stuck = threads.submit(leave.wait, 30)
        with pytest.raises(RerankError) as refused:
            threads.submit(threading.current_thread).result(timeout=0)
        assert not isinstance(refused.value, RerankTimeoutError)
        leave.set()
        assert stuck.result()
        assert threads.submit(threading.current_thread).result(timeout=30) is not threading.current_thread()


@pytest.mark.parametrize("make", [InlineExecutor, OwnThreads, lambda: DatabaseThreads(1, thread_name_prefix="leg")])
def test_an_error_is_raised_where_the_result_is_asked_for(make):
    def fail():
        raise KeyError("x")

    future = make().submit(fail)
    with pytest.raises(KeyError):
        future.result()


def test_a_call_in_a_thread_of_its_own_holds_up_nobody():
    leave = threading.Event()
    calls = [OwnThreads().submit(leave.wait, 30) for _ in range(9)]
    assert not any(call.done() for call in calls)
    leave.set()
    assert all(call.result(30) for call in calls)


@pytest.mark.django_db(transaction=True)
def test_a_thread_gives_its_connection_back(threads):
    def used():
        wrapper = connections["default"]
        with wrapper.cursor() as cursor:
            cursor.execute("SELECT 1")
        return wrapper

    assert threads.submit(used).result().connection is None


def _asked(sql):
    """Return a statement; of one that was prepared, its text."""
    if not sql.startswith("EXECUTE"):
        return sql
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements WHERE name = %s", [sql.split()[1]])
        return cursor.fetchone()[0]


@pytest.mark.usefixtures("world")
def test_a_second_search_reads_the_index_once_and_routes_and_calibrations_not_at_all():
    runtime.resources().part(RouterSource).get()
    with CaptureQueriesContext(connection) as caught:
        runtime.resources().part(RouterSource).get()
    asked = [_asked(query["sql"]) for query in caught.captured_queries]
    assert [table for table in _READ for sql in asked if f'FROM "{table}"' in sql] == ["retrieval_embeddingindex"]


@pytest.mark.django_db
def test_what_another_process_changes_is_seen_a_second_later(monkeypatch):
    moments = [0.0]
    cached = route_examples._added
    monkeypatch.setattr(route_examples, "_added", replace(cached, clock=lambda: moments[0]))
    assert route_examples.added_examples() == ()
    RouteExample.objects.create(route="skip", text="sing a song")
    assert route_examples.added_examples() == ()
    moments[0] = 1.0
    assert route_examples.added_examples() == (("skip", "sing a song"),)


def test_what_this_process_changes_is_seen_at_once(world):
    assert route_examples.added_examples() == ()
    example = route_examples.add_example("skip", "sing a song", actor=world.alice)
    assert route_examples.added_examples() == (("skip", "sing a song"),)
    route_examples.delete_example(example, actor=world.alice)
    assert route_examples.added_examples() == ()
