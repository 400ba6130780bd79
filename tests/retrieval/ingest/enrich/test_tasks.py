"""A sync that ends leaves a pass to a worker, where the connection asks for one."""

import pytest

from corecube.models import Connection
from retrieval.ingest.enrich import tasks
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk


@pytest.fixture
def sent(monkeypatch):
    """Return the messages that were sent to the queue."""
    messages = []
    monkeypatch.setattr(tasks.enrich_connection, "apply_async", lambda arguments, **_: messages.append(arguments))
    return messages


def test_the_end_of_a_sync_queues_a_pass_that_enriches(works, model, sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        sync_connection(works)
    assert sent == [(works.pk,)]
    assert not model.requests
    tasks.enrich_connection(works.pk)
    assert not Chunk.objects.filter(connection_id=works.pk, context_line="").exists()


def test_nothing_is_queued_without_a_wish_or_a_model(works, model, sent, settings, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        settings.CORECUBE_ENRICH_URL = ""
        sync_connection(works)
        settings.CORECUBE_ENRICH_URL = "http://127.0.0.1:1/"
        Connection.objects.filter(pk=works.pk).update(enrichment="")
        works.refresh_from_db()
        sync_connection(works)
    assert sent == []


def test_a_pass_of_a_connection_that_is_gone_or_disabled_does_nothing(works, model):
    tasks.enrich_connection(0)
    Connection.objects.filter(pk=works.pk).update(enabled=False)
    tasks.enrich_connection(works.pk)
    assert not model.requests
