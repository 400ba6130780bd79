"""Building indexes as a worker does it."""

import pytest
from celery.exceptions import Retry

from corecube.celery import app
from retrieval.errors import EncoderUnavailableError
from retrieval.index import active, embedding_index
from retrieval.ingest import index_tasks
from retrieval.models import Chunk, Embedding
from tests.indexes import Other


@pytest.fixture
def building(world, monkeypatch):
    encoder = Other(dim=32)
    monkeypatch.setattr(active, "encoder_of", lambda _: encoder)
    return embedding_index.start_index(encoder, source="local:other", mode="chunk_first")


def test_workers_know_the_task():
    app.loader.import_default_modules()
    assert "retrieval.ingest.index_tasks.build" in app.tasks


def test_the_task_completes_the_index(building):
    index_tasks.build(building.pk)
    building.refresh_from_db()
    assert building.ready_at
    assert Embedding.objects.filter(index_id=building.pk).count() == Chunk.objects.count()


def test_a_worker_that_starts_takes_up_what_is_unfinished_and_nothing_else(building, monkeypatch):
    sent = []
    monkeypatch.setattr(index_tasks.build, "delay", sent.append)
    monkeypatch.setattr(index_tasks, "close_old_connections", lambda: None)
    index_tasks.resume()
    index_tasks.build(building.pk)
    index_tasks.resume()
    assert sent == [building.pk]


def test_an_index_that_was_dropped_is_no_error_and_its_vectors_go(building):
    index_tasks.build(building.pk)
    key = building.pk
    building.delete()
    index_tasks.build(key)
    assert not Embedding.objects.filter(index_id=key).exists()


def test_while_its_service_is_down_a_build_is_tried_again(building, monkeypatch):
    def fail(_):
        raise EncoderUnavailableError

    monkeypatch.setattr(active, "encoder_of", fail)
    with pytest.raises((Retry, EncoderUnavailableError)):
        index_tasks.build(building.pk)
    building.refresh_from_db()
    assert building.problem == "The embedding service cannot be used right now."
