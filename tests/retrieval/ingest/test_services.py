import pytest
from django.db import IntegrityError, transaction

from retrieval.errors import ConnectionDisabledError
from retrieval.ingest import tasks
from retrieval.ingest.services import queue_sync, store_upload
from retrieval.models import Sync


@pytest.fixture(autouse=True)
def sent(monkeypatch):
    """Return the messages that were sent to workers."""
    ids = []
    monkeypatch.setattr(tasks.work, "apply_async", lambda **options: ids.append(options))
    return ids


def test_a_connection_waits_for_one_sync_of_a_kind(world, sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        first, second = (queue_sync(world.runbooks, actor=None) for _ in range(2))
        other = queue_sync(world.runbooks, actor=None, allow_deletions=True)
    assert first == second != other
    assert len(sent) == 3


def test_the_database_refuses_a_second_queued_sync_of_a_kind(world):
    queue_sync(world.runbooks, actor=None)
    with pytest.raises(IntegrityError), transaction.atomic():
        Sync.objects.create(connection=world.runbooks)
    Sync.objects.create(connection=world.runbooks, kind=Sync.Kind.DRY_RUN)


def test_the_database_refuses_a_second_running_sync_of_a_connection(world):
    Sync.objects.create(connection=world.runbooks, status=Sync.Status.RUNNING)
    with pytest.raises(IntegrityError), transaction.atomic():
        Sync.objects.create(connection=world.runbooks, status=Sync.Status.RUNNING, kind=Sync.Kind.DRY_RUN)


def test_a_disabled_connection_takes_no_sync_and_no_file(world, tmp_path):
    world.runbooks.enabled = False
    world.runbooks.save()
    with pytest.raises(ConnectionDisabledError):
        queue_sync(world.runbooks, actor=None)
    with (tmp_path / "file").open("w+b") as content, pytest.raises(ConnectionDisabledError):
        store_upload(world.runbooks, name="a.md", content=content, actor=None)
    assert not world.runbooks.syncs.filter(status="queued").exists()


def test_the_api_says_that_a_connection_is_disabled(world, client):
    world.runbooks.enabled = False
    world.runbooks.save()
    response = client.post(
        "/api/v1/connections/runbooks/sync", headers={"Authorization": f"Bearer {world.key('alice')}"}
    )
    assert (response.status_code, response.json()["error"]["code"]) == (409, "connection_disabled")
    assert "disabled" in response.json()["error"]["message"]
