"""When documents were last read: noted in memory, written together, gone with the document."""

from datetime import UTC, datetime, timedelta
from datetime import timezone as fixed_timezone

import pytest
from django.utils import timezone

from retrieval.index.writer import Access, delete_all_documents, write_accesses
from retrieval.models import Document, DocumentAccess
from retrieval.records import accesses
from retrieval.records.accesses import AccessBuffer, flush_accesses, note_accesses
from retrieval.search.request import SearchRequest
from retrieval.search.service import search

NOW = timezone.now()


@pytest.fixture
def recording(world, settings, monkeypatch):
    """Note accesses with a buffer of the test's own, which nothing but the test writes."""
    settings.CORECUBE_ACCESS_SECONDS = 3600
    monkeypatch.setattr(accesses, "_buffer", AccessBuffer())
    timers = []
    monkeypatch.setattr(accesses.threading, "Timer", lambda *given: timers.append(given) or _Timer())
    return timers


class _Timer:
    daemon = False

    def start(self):
        pass


@pytest.fixture
def queues(world):
    return Document.objects.get(external_id="queues.txt")


def read(document):
    return DocumentAccess.objects.filter(pk=document.pk).values_list("times", flat=True).first()


def test_accesses_wait_in_memory_and_are_written_together(recording, queues, django_assert_num_queries):
    with django_assert_num_queries(0):
        for _ in range(3):
            note_accesses([queues.pk, queues.pk])
    assert len(recording) == 1
    assert flush_accesses() == 1
    assert read(queues) == 3
    assert flush_accesses() == 0
    note_accesses([queues.pk])
    assert len(recording) == 2
    flush_accesses()
    assert read(queues) == 4


def test_a_later_time_stands_whatever_is_written_last(queues):
    write_accesses({queues.pk: Access(NOW, 1)})
    write_accesses({queues.pk: Access(NOW - timedelta(hours=5), 2)})
    (kept,) = DocumentAccess.objects.all()
    assert (kept.accessed_at, kept.times, kept.connection_id) == (NOW, 3, queues.connection_id)


def test_the_buffer_is_bounded(monkeypatch, queues):
    monkeypatch.setattr(accesses, "_LIMIT", 0)
    buffer = AccessBuffer()
    assert not buffer.note([queues.pk], NOW)
    assert buffer.take() == {}


def test_nothing_is_kept_where_it_is_switched_off(recording, queues, settings):
    settings.CORECUBE_ACCESS_SECONDS = 0
    note_accesses([queues.pk])
    assert flush_accesses() == 0


def test_the_record_goes_with_the_document_and_none_comes_after_it(world, queues):
    write_accesses({queues.pk: Access(NOW, 1)})
    delete_all_documents(world.runbooks)
    assert not DocumentAccess.objects.exists()
    write_accesses({queues.pk: Access(NOW, 1)})
    assert not DocumentAccess.objects.exists()


def test_opening_a_document_counts_and_being_listed_does_not(recording, world, queues, client):
    search(SearchRequest(text="draining the queue", preset="helix"), principal=world.principal("bob"))
    flush_accesses()
    assert not DocumentAccess.objects.exists()
    client.force_login(world.bob)
    assert client.get(f"/documents/{queues.pk}/").status_code == 200
    assert client.get("/documents/").status_code == 200
    flush_accesses()
    assert list(DocumentAccess.objects.values_list("document_id", "times")) == [(queues.pk, 1)]
    secret = world.key("bob")
    answer = client.get(f"/api/v1/documents/{queues.pk}", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 200
    flush_accesses()
    assert read(queues) == 2


def test_a_document_out_of_scope_is_not_read_by_asking_for_it(recording, world, client):
    client.force_login(world.bob)
    secret = Document.objects.get(connection=world.vault)
    assert client.get(f"/documents/{secret.pk}/").status_code == 404
    flush_accesses()
    assert not DocumentAccess.objects.exists()


def test_what_was_read_lately_ranks_as_recent(world, queues):
    def recency():
        outcome = search(SearchRequest(text="draining the queue", preset="helix"), principal=world.principal("alice"))
        return next(hit for hit in outcome.hits if hit.chunk_id.document_id == queues.pk).signals["recency"]

    Document.objects.update(modified_at=NOW - timedelta(days=100))
    assert recency() == pytest.approx(0.995**2400, rel=0.1)
    write_accesses({queues.pk: Access(timezone.now() - timedelta(hours=10), 1)})
    assert recency() == pytest.approx(0.995**10, rel=0.01)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_the_last_reading_before_the_day_of_the_last_is_kept(queues, order):
    # In UTC the last two are of one day.
    moments = [datetime(2026, 5, 1, 9, tzinfo=UTC), datetime(2026, 5, 3, 0, 10, tzinfo=UTC)]
    moments.append(datetime(2026, 5, 4, 1, 30, tzinfo=fixed_timezone(timedelta(hours=2))))
    for place in order:
        write_accesses({queues.pk: Access(moments[place], 1)})
    kept = DocumentAccess.objects.get()
    assert (kept.accessed_at, kept.accessed_before, kept.times) == (moments[2], moments[0], 3)


def test_nobody_sees_a_document_being_opened_by_asking_again(world, queues):
    def recency(name):
        outcome = search(SearchRequest(text="draining the queue", preset="helix"), principal=world.principal(name))
        hit = next(hit for hit in outcome.hits if hit.chunk_id.document_id == queues.pk)
        return hit.signals["recency"]

    write_accesses({queues.pk: Access(timezone.now() - timedelta(days=2), 1)})
    before = {name: recency(name) for name in ("alice", "bob")}
    write_accesses({queues.pk: Access(timezone.now(), 1)})
    assert recency("bob") == pytest.approx(before["bob"], rel=1e-3)
    assert recency("alice") == pytest.approx(1.0, rel=1e-3)


def test_who_is_no_admin_learns_only_the_day_of_a_reading(world, queues):
    def told(name, moment):
        write_accesses({queues.pk: Access(moment, 1)})
        outcome = search(SearchRequest(text="draining the queue", preset="helix"), principal=world.principal(name))
        hit = next(hit for hit in outcome.hits if hit.chunk_id.document_id == queues.pk)
        assert sum(hit.contributions.values()) == pytest.approx(hit.score)
        return hit.signals["recency"], hit.contributions["recency"], outcome.state.now

    Document.objects.update(modified_at=NOW - timedelta(days=100))
    day = (timezone.now() - timedelta(days=3)).replace(hour=0, minute=0, second=0, microsecond=0)
    early, late = (day + timedelta(hours=hour) for hour in (6, 18))
    (first, added, now), (second, again, _) = told("bob", early), told("bob", late)
    # Counted from the day's end, whatever the hour; what it adds to the score tells no more.
    assert first == pytest.approx(0.995 ** ((now - day) / timedelta(hours=1) - 24), rel=1e-3)
    assert (first, added) == (pytest.approx(second, rel=1e-3), pytest.approx(again, rel=1e-3))
    DocumentAccess.objects.all().delete()
    exact = [told("alice", moment) for moment in (early, late)]
    assert exact[0][0] == pytest.approx(exact[1][0] * 0.995**12, rel=1e-3)
