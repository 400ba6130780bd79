"""Workers say that they are alive."""

from datetime import timedelta

import pytest
from django.utils import timezone

from retrieval.ingest.workers import lost_workers, messages_waiting, record_worker, remove_worker
from retrieval.models import Worker

pytestmark = pytest.mark.django_db


def test_a_worker_has_one_row_however_often_it_speaks():
    record_worker(host="vm", pid=7)
    first = Worker.objects.get()
    record_worker(host="vm", pid=7)
    again = Worker.objects.get()
    assert again.started_at == first.started_at
    assert again.seen_at >= first.seen_at
    assert not lost_workers([again])


def test_one_that_fell_silent_is_lost_and_then_forgotten(settings):
    now = timezone.now()
    record_worker(host="vm", pid=7)
    Worker.objects.update(seen_at=now - timedelta(seconds=settings.CORECUBE_LOST_SECONDS + 1))
    assert [worker.pid for worker in lost_workers(list(Worker.objects.all()))] == [7]
    Worker.objects.update(seen_at=now - timedelta(hours=2))
    record_worker(host="vm", pid=8)
    assert [worker.pid for worker in Worker.objects.all()] == [8]


def test_one_that_ends_takes_its_row_with_it():
    record_worker()
    record_worker(host="elsewhere", pid=7)
    remove_worker()
    assert [worker.host for worker in Worker.objects.all()] == ["elsewhere"]


def test_a_queue_that_answers_is_counted():
    waiting = messages_waiting()
    assert waiting is not None
    assert waiting >= 0
