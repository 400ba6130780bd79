"""Few searches are at work at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore

import pytest
from django.db import connection

from corecube.models import User
from retrieval.turns import search_turn


def test_no_more_are_at_work_than_there_are_turns():
    turns, together = BoundedSemaphore(2), threading.Barrier(2, timeout=10)
    at_work, most = [], []

    def work(_):
        with search_turn(turns):
            at_work.append(1)
            most.append(len(at_work))
            together.wait()
            at_work.pop()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))
    assert max(most) == 2


def test_a_turn_is_given_back_after_a_failure():
    turns = BoundedSemaphore(1)
    with pytest.raises(ValueError, match="broken"), search_turn(turns):
        raise ValueError("broken")
    assert turns.acquire(blocking=False)


def test_after_a_while_a_search_begins_all_the_same_and_gives_back_nothing_that_it_never_had():
    turns = BoundedSemaphore(1)
    with search_turn(turns), search_turn(turns, wait_seconds=0.01):
        pass
    assert turns.acquire(blocking=False)
    assert not turns.acquire(blocking=False)


@pytest.mark.django_db(transaction=True)
def test_who_waits_keeps_no_connection():
    turns = BoundedSemaphore(1)
    User.objects.exists()
    with search_turn(turns), search_turn(turns, wait_seconds=0.01):
        assert connection.connection is None
    assert not User.objects.exists()


@pytest.mark.django_db
def test_inside_a_transaction_it_is_kept():
    turns = BoundedSemaphore(1)
    User.objects.create_user("alice")
    with search_turn(turns), search_turn(turns, wait_seconds=0.01):
        assert User.objects.exists()
