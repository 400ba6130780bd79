"""Processes that change the rows of one sync lock them in one order."""

from concurrent.futures import ThreadPoolExecutor
from time import sleep
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError, connection, transaction

from corecube.models import Compartment, Connection
from retrieval.ingest import claims
from retrieval.ingest.claims import record_heartbeat
from retrieval.models import Sync, SyncItem

_STATE = SyncItem.State
WORKER = UUID(int=7)


@pytest.fixture
def items(transactional_db):
    """Return two claimed items of a running sync; the first by key lies behind the second on the disk."""
    compartment = Compartment.objects.create(slug="work", name="Work")
    source = Connection.objects.create(slug="notes", name="Notes", kind="upload", compartment=compartment)
    sync = Sync.objects.create(connection=source, status=Sync.Status.RUNNING)
    made = [
        SyncItem.objects.create(
            sync=sync, document_id=uuid4(), external_id=name, state=state, worker=WORKER, attempts=1
        )
        for name, state in (("a", _STATE.QUEUED), ("b", _STATE.RUNNING))
    ]
    SyncItem.objects.filter(pk=made[0].pk).update(state=_STATE.RUNNING)
    return made


def _waits_without(row, first, work):
    """Return whether work that needs an item and another row waits for the item without holding the row."""

    def at_work():
        try:
            with connection.cursor() as cursor:
                # As the planner reads many rows: in the order in which they lie.
                cursor.execute("SET enable_indexscan = off")
            work()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            SyncItem.objects.select_for_update().get(pk=first.pk)
            done = pool.submit(at_work)
            _wait_for_somebody_waiting()
            try:
                with transaction.atomic():
                    type(row).objects.select_for_update(nowait=True).get(pk=row.pk)
                is_free = True
            except DatabaseError:
                is_free = False
        done.result(timeout=20)
    return is_free


def _wait_for_somebody_waiting():
    with connection.cursor() as cursor:
        for _ in range(500):
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
            sleep(0.01)
    pytest.fail("nobody waits")


@pytest.mark.parametrize(
    "work",
    [
        lambda keys, sync: claims.finish_unchanged(keys, WORKER, sync=sync),
        lambda keys, _: claims.set_storing(keys, WORKER),
        lambda keys, _: claims.set_embedded_share(keys, WORKER, 0.5),
        lambda keys, sync: claims.fail(claims.claimed_by(WORKER, keys), sync_id=sync.pk, reason="corrupt", message=""),
        lambda _, sync: record_heartbeat(sync.pk, WORKER),
        lambda _, __: claims.release(WORKER),
        lambda _, sync: claims.release_lost(sync),
    ],
    ids=[
        "finish_unchanged",
        "set_storing",
        "set_embedded_share",
        "fail",
        "record_heartbeat",
        "release",
        "release_lost",
    ],
)
def test_items_are_locked_by_their_keys_wherever_they_lie(items, work):
    keys = [item.pk for item in reversed(items)]
    assert _waits_without(items[1], items[0], lambda: work(keys, items[0].sync))


def test_a_heartbeat_locks_the_items_before_the_sync(items):
    """As whoever finishes an item does; the watchdog sends it in a transaction of its own."""

    def work():
        with transaction.atomic():
            record_heartbeat(items[0].sync_id, WORKER)

    assert _waits_without(items[0].sync, items[0], work)


def test_unchanged_items_are_counted_once_each(items):
    sync = items[0].sync
    claims.finish_unchanged([item.pk for item in items], WORKER, sync=sync)
    claims.finish_unchanged([item.pk for item in items], WORKER, sync=sync)
    sync.refresh_from_db()
    assert (sync.unchanged, SyncItem.objects.filter(state=_STATE.DONE).count()) == (2, 2)
