"""Few searches are at work at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from time import monotonic

import pytest
from django.db import connection

from corecube.models import User
from retrieval.turns import SearchTurns


def free(turns):
    """Return how many turns can be had now; nobody else may want one."""
    with ExitStack() as held:
        began = monotonic()
        count = 0
        while monotonic() - began < 0.05:
            held.enter_context(turns.one(wait_seconds=0.05))
            count += 1
        return count - 1


def test_no_more_are_at_work_than_there_are_turns():
    turns, together = SearchTurns(2), threading.Barrier(2, timeout=10)
    at_work, most = [], []

    def work(_):
        with turns.one():
            at_work.append(1)
            most.append(len(at_work))
            together.wait()
            at_work.pop()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))
    assert max(most) == 2


def test_a_turn_is_given_back_after_a_failure():
    turns = SearchTurns(1)
    with pytest.raises(ValueError, match="broken"), turns.one():
        raise ValueError("broken")
    assert free(turns) == 1


def test_after_a_while_a_search_begins_all_the_same_and_gives_back_nothing_that_it_never_had():
    turns = SearchTurns(1)
    with turns.one(), turns.one(wait_seconds=0.01):
        assert turns.wanted == 2
    assert free(turns) == 1
    assert turns.wanted == 0


@pytest.mark.django_db(transaction=True)
def test_who_waits_keeps_no_connection():
    turns = SearchTurns(1)
    User.objects.exists()
    with turns.one(), turns.one(wait_seconds=0.01):
        assert connection.connection is None
    assert not User.objects.exists()


@pytest.mark.django_db
def test_inside_a_transaction_it_is_kept():
    turns = SearchTurns(1)
    User.objects.create_user("alice")
    with turns.one(), turns.one(wait_seconds=0.01):
        assert User.objects.exists()
