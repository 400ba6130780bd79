"""Telling whether documents have changed since a moment."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from django.db import connection, transaction

from retrieval.index.outbox import mark
from retrieval.models import OutboxEntry
from retrieval.models.search import CurrentTransaction


def change(connection_id):
    OutboxEntry.objects.create(
        document_id=uuid4(), connection_id=connection_id, deleted=False, transaction_id=CurrentTransaction()
    )


def beside(*connection_ids, since=None):
    """Return the mark that another transaction sees."""

    def run():
        try:
            return mark(connection_ids, since=since)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(run).result()


@pytest.mark.django_db(transaction=True)
def test_what_was_written_before_a_mark_and_ends_after_it_is_a_change():
    with transaction.atomic():
        change(1)
        before = beside(1)
        assert beside(1, since=before) == before
    assert beside(1, since=before) != before


@pytest.mark.django_db(transaction=True)
def test_a_change_elsewhere_is_none():
    change(1)
    before = mark([1])
    change(2)
    assert mark([1], since=before) == before
    change(1)
    assert mark([1], since=before) != before


@pytest.mark.django_db(transaction=True)
def test_a_later_change_is_seen_whatever_ended_before_it():
    with transaction.atomic():
        change(1)
        before = beside(1, 2)
        with ThreadPoolExecutor(1) as executor:
            executor.submit(lambda: (change(2), connection.close())).result()
        assert beside(1, 2, since=before) != before
