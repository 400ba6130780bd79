"""Records that are written behind their answers, by a thread with its own connection."""

import math
import threading
import time
import uuid
from functools import partial

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.utils import timezone

from corecube.models import User
from retrieval.engine.ids import age_of, timed_id
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
        id=timed_id(), at=timezone.now(), user_id=user_id, preset="corecube", milliseconds=1.0, hit_count=0
    )


def unmakable():
    raise ValueError("how to roll back staging")


def added(writer, make=made):
    return writer.add(timed_id(), make)


def test_a_search_is_readable_right_after_its_answer_and_as_if_written_at_once(world):
    asked = SearchRequest(text="how to roll back staging", now=timezone.now())
    principal = world.principal("alice")
    at_once = SearchRecord.objects.get(pk=search(asked, principal=principal).id)
    record_writer.begin()
    outcome = search(asked, principal=principal)
    assert not outcome.pending.ended.is_set()
    behind = SearchRecord.objects.get(pk=outcome.id)
    assert outcome.record_id == outcome.id
    timed = {"id", "at", "milliseconds", "transaction_id", "trace"}
    names = {field.attname for field in SearchRecord._meta.fields} - timed
    assert {name: getattr(behind, name) for name in names} == {name: getattr(at_once, name) for name in names}
    assert behind.at >= at_once.at
    assert behind.transaction_id > at_once.transaction_id
    assert behind.trace["hits"] == at_once.trace["hits"]
    assert [span["drops"] for span in behind.trace["spans"]] == [span["drops"] for span in at_once.trace["spans"]]


def test_records_are_written_without_a_reader(writer):
    pending = added(writer)
    ends = time.monotonic() + 10
    while not pending.ended.is_set() and time.monotonic() < ends:
        time.sleep(0.01)
    assert pending.is_stored


def test_a_record_that_cannot_be_stored_takes_no_other_with_it(writer, caplog):
    user = User.objects.create(username="gone")
    gone = user.pk
    user.delete()
    makers = [made, partial(made, gone), unmakable, made]
    found = [added(writer, make) for make in makers]
    assert [it.wait() for it in found] == [True, False, False, True]
    assert SearchRecord.objects.count() == 2
    assert [it.getMessage() for it in caplog.records] == [
        f"search.unrecorded id={found[1].id} error=ForeignKeyViolation",
        f"search.unrecorded id={found[2].id} error=ValueError",
    ]


def test_a_lost_connection_loses_no_record(writer):
    tries = []

    def make():
        if not tries:
            connection.ensure_connection()
            connection.connection.close()
        tries.append(1)
        return made()

    assert added(writer, make).wait()
    assert len(tries) == 2


def test_a_database_that_stays_away_costs_the_record_and_tells(writer, caplog):
    def make():
        connection.ensure_connection()
        connection.connection.close()
        return made()

    pending = added(writer, make)
    assert not pending.wait()
    assert [it.getMessage() for it in caplog.records] == [f"search.unrecorded id={pending.id} error=OperationalError"]
    assert added(writer).wait()


def test_the_end_of_the_writer_loses_none(writer):
    found = [added(writer) for _ in range(20)]
    writer.end()
    assert all(it.is_stored for it in found)
    assert added(writer) is None


def test_a_web_server_that_is_stopped_writes_what_is_pending():
    from corecube.asgi import Handler

    told = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    sent = []

    async def receive():
        return next(told)

    async def send(message):
        sent.append(message["type"])

    record_writer.begin()
    pending = added(record_writer)
    async_to_sync(Handler())({"type": "lifespan"}, receive, send)
    assert pending.is_stored
    assert added(record_writer) is None
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_a_search_past_a_full_queue_is_recorded_at_once(world, monkeypatch):
    monkeypatch.setattr(module, "_LIMIT", 0)
    record_writer.begin()
    outcome = search(SearchRequest(text="how to roll back staging"), principal=world.principal("alice"))
    assert outcome.pending is None
    assert SearchRecord.objects.filter(pk=outcome.record_id).exists()


def test_another_server_waits_for_the_record_of_a_new_id_alone():
    row = made()
    later = threading.Timer(0.15, row_saved, args=[row])
    later.start()
    await_record(row.pk)
    assert SearchRecord.objects.filter(pk=row.pk).exists()
    later.join()
    started = time.monotonic()
    await_record(uuid.uuid4())
    await_record(uuid.UUID(int=timed_id().int - (10_000 << 80)))
    assert time.monotonic() - started < 1


def test_ids_tell_when_they_were_made():
    earlier, later = uuid.UUID(int=timed_id().int - (90_000 << 80)), timed_id()
    assert (later.version, later.variant) == (7, uuid.RFC_4122)
    assert earlier < later
    assert age_of(earlier) == pytest.approx(90, abs=5)
    assert age_of(uuid.uuid4()) == math.inf


def row_saved(row):
    row.save(force_insert=True)
    connection.close()
