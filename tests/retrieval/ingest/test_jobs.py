"""What queued syncs wait for."""

from datetime import timedelta

import pytest
from django.utils import timezone

from corecube.models import Compartment, Connection
from retrieval.ingest.jobs import Wait, WaitReason, job_states, waits
from retrieval.models import Sync


@pytest.fixture
def queue(db):
    """Return a function that queues a sync of a connection, made when there is none; later calls queue later."""
    compartment = Compartment.objects.create(slug="c", name="C")

    def add(slug, **fields):
        facts = {"name": slug, "kind": "push", "compartment": compartment}
        connection = Connection.objects.get_or_create(slug=slug, defaults=facts)[0]
        return Sync.objects.create(connection=connection, **fields)

    return add


def wait_of(sync, later=timedelta(0)):
    return job_states([sync], timezone.now() + later)[0].wait


def test_the_first_is_next_and_others_count_who_is_ahead(queue):
    syncs = [queue(slug) for slug in ("a", "b", "c")]
    assert [wait_of(sync) for sync in syncs] == [Wait(WaitReason.WORKER, ahead) for ahead in (0, 1, 2)]


def test_one_sync_of_a_connection_comes_after_the_other(queue):
    queue("a", status="running")
    assert wait_of(queue("a")).reason is WaitReason.SAME_CONNECTION
    queue("b", kind="dry_run")
    assert wait_of(queue("b")).reason is WaitReason.SAME_CONNECTION


def test_a_disabled_connection_is_waited_for(queue):
    sync = queue("a")
    sync.connection.enabled = False
    assert wait_of(sync).reason is WaitReason.DISABLED


def test_without_a_worker_nobody_looks(queue):
    sync = queue("a")
    assert wait_of(sync, timedelta(minutes=2)).reason is WaitReason.NO_WORKER
    Sync.objects.update(woken_at=timezone.now() + timedelta(minutes=2))
    sync.refresh_from_db()
    assert wait_of(sync, timedelta(minutes=2)).reason is WaitReason.WORKER


def test_what_runs_or_ended_waits_for_nothing(queue, django_assert_num_queries):
    assert wait_of(queue("a", status="done")) is None
    with django_assert_num_queries(0):
        assert waits([], timezone.now()) == {}
