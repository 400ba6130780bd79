"""What counts as a replica that may be read; reading a real one is tested in tests/retrieval/index."""

from types import SimpleNamespace

import pytest
from django.db import OperationalError, connection, transaction
from psycopg import errors

from corecube import replicas as replicas_module
from corecube.errors import DatabaseUnavailableError
from corecube.replicas import Problem, Replica, Replicas, _has_reached


@pytest.mark.django_db
def test_another_server_than_a_replica_is_never_read():
    replica = Replica("default")
    assert replica.problem is Problem.UNCHECKED
    replica.check()
    assert replica.problem is Problem.FOREIGN
    assert Replicas((replica,)).words() == "Replica 1 is not a replica of the database in DATABASE_URL."


@pytest.mark.django_db
def test_a_transaction_reads_its_own_changes():
    replica = Replica("default", clock=lambda: 0.0)
    replica._problem, replica._current_at = Problem.NONE, 0.0
    assert not replica.problem
    with transaction.atomic():
        assert connection.in_atomic_block
        assert Replicas((replica,)).usable() is None


def test_content_of_unknown_or_greater_age_is_not_read(settings):
    settings.CORECUBE_REPLICA_LAG_SECONDS = 10
    now = [100.0]
    replica = Replica("replica_1", clock=lambda: now[0])
    replica._problem = Problem.NONE
    assert replica.problem is Problem.BEHIND
    replica._current_at = 90.0
    assert replica.problem is Problem.NONE
    now[0] = 100.1
    assert replica.problem is Problem.BEHIND


@pytest.mark.parametrize(
    ("cause", "problem", "left"),
    [
        # A read that stood in the way of replaying says nothing about the next one.
        (errors.SerializationFailure(), Problem.CONFLICT, Problem.NONE),
        (errors.AdminShutdown(), Problem.DOWN, Problem.DOWN),
    ],
)
def test_a_failed_read_is_counted_by_its_reason(cause, problem, left, monkeypatch):
    closed = []
    monkeypatch.setattr(replicas_module, "connections", {"replica_1": SimpleNamespace(close=lambda: closed.append(1))})
    replica = Replica("replica_1", clock=lambda: 0.0)
    replica._problem, replica._current_at = Problem.NONE, 0.0
    found = Replicas((replica,))
    error, between = DatabaseUnavailableError(), OperationalError()
    error.__cause__, between.__cause__ = between, cause
    found.failed(replica, error)
    assert (found.fallbacks, replica.problem, closed) == ({problem: 1}, left, [1])


def test_a_replica_at_the_end_of_a_page_has_reached_the_first_record_of_the_next():
    assert _has_reached(8192, 8192 + 24)
    assert _has_reached(100, 100)
    assert not _has_reached(100, 101)
    # Behind the longest header of a page there is a record.
    assert not _has_reached(8192, 8192 + 41)
