"""Statements that a connection plans once."""

import pytest
from django.db import connection, transaction

from corecube.database import Prepared, execution

GREETING = Prepared("SELECT %(name)s::text || '!', %(times)s::int, upper(%(name)s::text), 7 %% 4")


def run(statement, **parameters):
    with connection.cursor() as cursor:
        cursor.execute(execution(cursor, statement), parameters)
        return cursor.fetchone()


def times_prepared(statement):
    """Return how often this connection has prepared a statement."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s", [f"%{statement}"])
        return cursor.fetchone()[0]


def test_a_parameter_is_one_argument_wherever_it_stands():
    assert GREETING.numbered == "SELECT $1::text || '!', $2::int, upper($1::text), 7 % 4"
    assert GREETING.arguments == "(%(name)s, %(times)s)"
    assert Prepared("SELECT 1").arguments == ""


def test_what_is_made_of_one_is_a_plain_text():
    assert not isinstance(GREETING.replace("!", "?"), Prepared)


@pytest.mark.django_db
def test_a_connection_prepares_it_once_and_runs_it_with_what_it_is_given():
    assert run(GREETING, name="Ada's", times=2) == ("Ada's!", 2, "ADA'S", 3)
    assert run(GREETING, name="Ben", times=3) == ("Ben!", 3, "BEN", 3)
    assert run(Prepared("SELECT 41 + 1")) == (42,)
    assert times_prepared(GREETING.numbered) == 1


@pytest.mark.django_db(transaction=True)
def test_another_connection_prepares_it_again():
    assert run(GREETING, name="Ada", times=1)[0] == "Ada!"
    # The pool closes it with its other connections.
    connection.close()
    connection.close_pool()
    assert times_prepared(GREETING.numbered) == 0
    assert run(GREETING, name="Ada", times=1)[0] == "Ada!"


@pytest.mark.django_db
def test_it_is_there_after_a_transaction_that_was_taken_back():
    other = Prepared("SELECT %(number)s::int + 1")
    with transaction.atomic():
        assert run(other, number=1) == (2,)
        transaction.set_rollback(True)
    assert run(other, number=2) == (3,)
    assert times_prepared(other.numbered) == 1
