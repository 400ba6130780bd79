import threading

import pytest
from django.db import connections

from retrieval.runtime import DatabaseThreads, InlineExecutor


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


@pytest.mark.parametrize("make", [InlineExecutor, lambda: DatabaseThreads(1, thread_name_prefix="leg")])
def test_an_error_is_raised_where_the_result_is_asked_for(make):
    def fail():
        raise KeyError("x")

    future = make().submit(fail)
    with pytest.raises(KeyError):
        future.result()


@pytest.mark.django_db(transaction=True)
def test_a_thread_gives_its_connection_back(threads):
    def used():
        wrapper = connections["default"]
        with wrapper.cursor() as cursor:
            cursor.execute("SELECT 1")
        return wrapper

    assert threads.submit(used).result().connection is None
