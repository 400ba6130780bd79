"""Records that are written behind their answers, by a thread with a connection of its own."""

import threading
import time
import uuid
from functools import partial

import pytest
from django.db import connection
from django.utils import timezone

from corecube.models import User
from retrieval.models import SearchRecord
from retrieval.records.arrival import await_record
from retrieval.search import record_writer as module
from retrieval.search.record_writer import RecordWriter, record_writer
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def writer():
    found = RecordWriter()
    found.begin()
    yield found
    found.end()


def made(user_id=None):
    return SearchRecord(
        id=uuid.uuid4(), at=timezone.now(), user_id=user_id, preset="corecube", milliseconds=1.0, hit_count=0
    )


def test_a_search_is_readable_right_after_its_answer_and_as_if_written_at_once(world):
    asked = SearchRequest(text="how to roll back staging", now=timezone.now())
    principal = world.principal("alice")
    at_once = SearchRecord.objects.get(pk=search(asked, principal=principal).id)
    record_writer.begin()
    try:
        outcome = search(asked, principal=principal)
        assert not outcome.pending.ended.is_set()
        behind = SearchRecord.objects.get(pk=outcome.id)
    finally:
        record_writer.end()
    assert outcome.record_id == outcome.id
    timed = {"id", "at", "milliseconds", "transaction_id", "trace"}
    names = {field.attname for field in SearchRecord._meta.fields} - timed
    assert {name: getattr(behind, name) for name in names} == {name: getattr(at_once, name) for name in names}
    assert behind.at >= at_once.at
    assert behind.transaction_id > at_once.transaction_id
    assert behind.trace["hits"] == at_once.trace["hits"]
    assert [span["drops"] for span in behind.trace["spans"]] == [span["drops"] for span in at_once.trace["spans"]]


def test_records_are_written_without_a_reader(writer):
    pending = writer.add(made)
    ends = time.monotonic() + 10
    while not pending.ended.is_set() and time.monotonic() < ends:
        time.sleep(0.01)
    assert pending.is_stored


def test_a_record_that_cannot_be_stored_takes_no_other_with_it(writer):
    user = User.objects.create(username="gone")
    gone = user.pk
    user.delete()
    found = [writer.add(partial(made, user_id)) for user_id in (None, gone, None)]
    assert [it.wait() for it in found] == [True, False, True]
    assert SearchRecord.objects.count() == 2


def test_the_end_of_the_process_loses_none(writer):
    found = [writer.add(made) for _ in range(20)]
    writer.end()
    assert all(it.is_stored for it in found)
    assert writer.add(made) is None


def test_a_full_queue_is_not_added_to(writer, monkeypatch):
    monkeypatch.setattr(module, "_LIMIT", 1)
    assert writer.add(made) is not None
    assert writer.add(made) is None


def test_another_server_waits_for_a_record_for_a_moment():
    row = made()
    later = threading.Timer(0.15, row_saved, args=[row])
    later.start()
    await_record(row.pk)
    assert SearchRecord.objects.filter(pk=row.pk).exists()
    later.join()
    await_record(uuid.uuid4())


def row_saved(row):
    row.save(force_insert=True)
    connection.close()
