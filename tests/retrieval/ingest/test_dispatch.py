"""Workers that share the work of many syncs."""

import time
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from corecube.connectors.types import ItemError, SourceItem
from corecube.models import Compartment, Connection
from corecube.secrets import seal
from retrieval.encoders.protocol import Batching
from retrieval.errors import IngestError
from retrieval.index import active
from retrieval.ingest import claims, run, tasks
from retrieval.ingest.completion import finish_all_cancelled
from retrieval.ingest.dispatch import complete_next, has_work, list_next, process_next, startable, work_until_idle
from retrieval.ingest.jobs import STALLED, job_states
from retrieval.ingest.listing import Listing
from retrieval.ingest.preparation import prepare_raw
from retrieval.ingest.run import Doing, Source, Step, Steps, SyncEndedError, job_of
from retrieval.ingest.schedule import is_wake_due, next_start, queue_due, refresh_waiting_syncs
from retrieval.ingest.services import cancel_sync, queue_sync, retry_failed
from retrieval.ingest.sync import sync_connection
from retrieval.ingest.watchdog import new_steps, release_overdue
from retrieval.models import Document, Sync, SyncItem
from tests.fakes import HashEncoder


@pytest.fixture(autouse=True)
def no_queue(monkeypatch):
    monkeypatch.setattr(tasks.work, "apply_async", lambda **_: None)


@pytest.fixture
def folders(db, tmp_path):
    """Two connections, one with many files and one with few."""
    compartment = Compartment.objects.create(slug="c", name="C")
    made = {}
    for slug, count in (("large", 40), ("small", 3)):
        folder = tmp_path / slug
        folder.mkdir()
        for number in range(count):
            (folder / f"{number:02}.md").write_text(f"# {slug} {number}\n\nText {number} of the {slug} one.\n")
        made[slug] = Connection.objects.create(
            slug=slug,
            name=slug,
            kind="folder",
            config={"path": str(folder)},
            compartment=compartment,
            language="english",
        )
    return made


class Flaky:
    """A connector that fails for some items, a number of times each."""

    def __init__(self, reason, times, *names):
        self.reason = reason
        self.left = dict.fromkeys(names, times)
        self.reads = []
        self.versions = {}

    def check(self):
        pass

    def items(self):
        for name in ("a", "b"):
            yield SourceItem(
                name,
                f"{name}.txt",
                uri="",
                locator=name,
                modified_at=None,
                version=self.versions.get(name, ""),
                facts={"author": "Ann"},
            )

    def read(self, item):
        self.reads.append(item.external_id)
        if self.left.get(item.external_id, 0):
            self.left[item.external_id] -= 1
            raise ItemError(self.reason, "It did not work.")
        return f"Text of {item.external_id}.".encode()


def test_two_queued_syncs_are_worked_through(folders):
    for connection in folders.values():
        queue_sync(connection, actor=None)
    work_until_idle()
    assert {(it.status, it.added) for it in Sync.objects.all()} == {("done", 40), ("done", 3)}
    assert Document.objects.count() == 43
    # What was done is forgotten, item by item.
    assert not SyncItem.objects.exists()
    assert not has_work()


def test_the_connection_with_the_fewest_claims_goes_first(folders):
    for connection in folders.values():
        queue_sync(connection, actor=None)
    first, second = uuid4(), uuid4()
    assert list_next(first)
    assert list_next(second)
    turn = claims.next_sync()
    claims.claim(turn, first, limit=2)
    other = claims.next_sync()
    assert other.connection_id != turn.connection_id
    claims.claim(other, second, limit=1)
    assert claims.next_sync() == other


def test_two_workers_never_claim_the_same_item(folders):
    sync = queue_sync(folders["large"], actor=None)
    list_next(uuid4())
    sync.refresh_from_db()
    first, second = (claims.claim(sync, uuid4(), limit=15) for _ in range(2))
    assert len({item.pk for item in (*first, *second)}) == 30
    assert [item.external_id for item in first] == [f"{number:02}.md" for number in range(15)]


def test_a_lost_workers_claims_return_and_its_late_result_is_not_stored(folders, settings):
    sync = queue_sync(folders["small"], actor=None)
    lost = uuid4()
    list_next(lost)
    claimed = claims.claim(sync, lost)
    assert not process_next(uuid4())
    SyncItem.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=settings.CORECUBE_LOST_SECONDS + 1))
    while process_next(uuid4()):
        pass
    with pytest.raises(claims.ClaimLostError):
        claims.finish(claimed[0].pk, lost, sync=sync, outcome=SyncItem.Outcome.ADDED)
    assert complete_next()
    sync.refresh_from_db()
    assert (sync.status, sync.added) == ("done", 3)


def test_an_item_that_workers_die_over_fails_in_the_end(folders):
    sync = queue_sync(folders["small"], actor=None)
    list_next(uuid4())
    SyncItem.objects.filter(external_id="01.md").update(attempts=claims.MAX_ATTEMPTS - 1)
    claims.claim(sync, uuid4())
    SyncItem.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    work_until_idle()
    sync.refresh_from_db()
    assert (sync.status, sync.added, sync.failed) == ("done", 2, 1)
    assert sync.connection.problems.get().reason == "lost"


def test_what_may_pass_is_tried_again_and_what_will_not_is_not(folders, monkeypatch):
    monkeypatch.setattr(claims, "_FIRST_WAIT_SECONDS", 0.01)
    flaky = Flaky("unavailable", 2, "a")
    sync = sync_connection(folders["small"], sync=Sync(connection=folders["small"]), source=Source(flaky))
    assert (sync.added, sync.failed, flaky.reads.count("a")) == (2, 0, 3)
    broken = Flaky("corrupt", 2, "a")
    sync = sync_connection(folders["large"], source=Source(broken))
    assert (sync.added, sync.failed, broken.reads.count("a")) == (1, 1, 1)


def test_the_wait_grows_by_four_and_is_spread():
    # 2 * 4 ** (n - 1) seconds, times 0.5 to 1.5, and never more than 600 before that.
    assert [claims.wait_seconds(n, draw=lambda: 0.5) for n in (1, 2, 3, 9)] == [2.0, 8.0, 32.0, 600.0]
    assert (claims.wait_seconds(2, draw=lambda: 0.0), claims.wait_seconds(2, draw=lambda: 1.0)) == (4.0, 12.0)


def test_only_what_failed_is_tried_again(folders):
    flaky = Flaky("too_slow", 1, "a")
    sync = sync_connection(folders["small"], source=Source(flaky))
    assert job_states([sync], timezone.now())[0].retryable == 1
    retry = retry_failed(sync, actor=None)
    assert (retry.kind, retry.seen) == (Sync.Kind.RETRY, 1)
    flaky.reads.clear()
    retry = sync_connection(folders["small"], sync=retry, source=Source(flaky))
    assert (retry.status, retry.added, flaky.reads) == ("done", 1, ["a"])
    assert not folders["small"].problems.exists()
    assert Document.objects.filter(connection=folders["small"]).count() == 2


def test_an_item_with_a_known_version_is_not_read_again(folders):
    source = Flaky("corrupt", 0)
    source.versions = {"a": "1", "b": "1"}
    sync_connection(folders["small"], source=Source(source))
    assert Document.objects.get(external_id="a").metadata["author"] == "Ann"
    source.reads.clear()
    source.versions["b"] = "2"
    sync = sync_connection(folders["small"], source=Source(source))
    assert (source.reads, sync.unchanged, sync.changed) == (["b"], 2, 0)
    source.reads.clear()
    assert sync_connection(folders["small"], source=Source(source)).unchanged == 2
    # The same bytes under a new version are known by that one from then on.
    assert source.reads == []


def test_another_recipe_makes_a_known_version_be_read(folders):
    source = Flaky("corrupt", 0)
    source.versions = {"a": "1", "b": "1"}
    sync_connection(folders["small"], source=Source(source))
    folders["small"].language = "german"
    folders["small"].save()
    source.reads.clear()
    assert sync_connection(folders["small"], source=Source(source)).changed == 2
    assert source.reads == ["a", "b"]


def test_a_dry_run_counts_and_names_the_first_and_stores_no_document(folders, tmp_path):
    sync_connection(folders["small"])
    (tmp_path / "small" / "00.md").write_text("# New words\n\nOther text.\n")
    (tmp_path / "small" / "01.md").unlink()
    (tmp_path / "small" / "09.md").write_text("# Nine\n\nText.\n")
    before = list(Document.objects.order_by("pk").values())
    queue_sync(folders["small"], actor=None, dry_run=True)
    work_until_idle()
    sync = folders["small"].syncs.first()
    assert (sync.status, sync.seen, sync.added, sync.changed, sync.unchanged, sync.deleted) == ("done", 3, 1, 1, 1, 1)
    assert list(Document.objects.order_by("pk").values()) == before
    named = sync.items.order_by("external_id").values_list("external_id", "state", "outcome")
    assert list(named) == [("00.md", "done", "changed"), ("01.md", "gone", ""), ("09.md", "done", "added")]
    assert job_states([sync], timezone.now())[0].retryable == 0
    sync_connection(folders["small"])
    assert not SyncItem.objects.exists()


def test_a_dry_run_names_no_more_than_the_first(folders, monkeypatch):
    monkeypatch.setattr("retrieval.ingest.listing.MAX_NAMES", 3)
    queue_sync(folders["large"], actor=None, dry_run=True)
    work_until_idle()
    sync = folders["large"].syncs.first()
    assert (sync.added, sync.items.count()) == (40, 3)


def test_a_cancelled_sync_stores_nothing_more(folders, monkeypatch):
    monkeypatch.setattr("retrieval.ingest.work._CHECK_SECONDS", 0.0)
    monkeypatch.setattr("retrieval.ingest.work.BATCH_CHUNKS", 1)
    seen = []

    def cancel_after_five(sync):
        seen.append(sync.added)
        if sync.added == 5:
            cancel_sync(sync, actor=None)

    sync = sync_connection(folders["large"], progress=cancel_after_five)
    assert (sync.status, Document.objects.count(), max(seen)) == ("cancelled", 5, 5)
    assert not SyncItem.objects.exists()


def test_a_queued_sync_is_cancelled_before_it_begins(folders):
    sync = cancel_sync(queue_sync(folders["small"], actor=None), actor=None)
    work_until_idle()
    sync.refresh_from_db()
    assert (sync.status, Document.objects.count()) == ("cancelled", 0)


def test_a_document_is_not_stored_for_a_sync_that_was_cancelled_while_it_was_embedded(folders, monkeypatch):
    class Cancelling(HashEncoder):
        def encode_documents(self, texts):
            cancel_sync(Sync.objects.get(), actor=None)
            return super().encode_documents(texts)

    encoder = Cancelling()
    monkeypatch.setattr(active, "encoder", lambda *_: encoder)
    assert sync_connection(folders["small"]).status == "cancelled"
    assert not Document.objects.exists()


def test_a_running_sync_without_a_sign_of_life_is_stalled(folders):
    sync = queue_sync(folders["small"], actor=None)
    list_next(uuid4())
    sync.refresh_from_db()
    assert job_states([sync], timezone.now())[0].state == "running"
    Sync.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    sync.refresh_from_db()
    assert job_states([sync], timezone.now())[0].state == STALLED
    SyncItem.objects.update(next_try_at=timezone.now() + timedelta(hours=1))
    refresh_waiting_syncs()
    sync.refresh_from_db()
    assert job_states([sync], timezone.now())[0].state == "running"


def test_a_listing_that_died_is_begun_again_and_counts_once(folders, monkeypatch):
    monkeypatch.setattr("retrieval.ingest.listing._PAGE", 10)
    sync = Sync.objects.create(
        connection=folders["large"], status=Sync.Status.RUNNING, started_at=timezone.now(), heartbeat_at=timezone.now()
    )

    class DiedError(Exception):
        pass

    def die(sync):
        if sync.seen >= 20:
            raise DiedError

    with pytest.raises(DiedError):
        Listing(job_of(sync), die, new_steps()).run()
    assert process_next(uuid4())
    Sync.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    work_until_idle()
    sync.refresh_from_db()
    assert (sync.status, sync.seen, sync.added, sync.unchanged) == ("done", 40, 40, 0)


def test_a_schedule_queues_each_turn_once(folders):
    assert queue_due() == []
    Connection.objects.filter(slug="small").update(sync_every_minutes=60)
    assert [sync.connection.slug for sync in queue_due()] == ["small"]
    assert queue_due() == []
    small = Connection.objects.get(slug="small")
    assert timedelta(minutes=53) < small.next_sync_at - timezone.now() < timedelta(minutes=67)
    Connection.objects.update(next_sync_at=timezone.now())
    # The one before still waits, so this turn is passed over.
    assert queue_due() == []
    work_until_idle()
    Connection.objects.update(next_sync_at=timezone.now())
    assert len(queue_due()) == 1


def test_a_turn_is_a_tenth_early_at_most_and_never_late():
    now = timezone.now()
    assert next_start(now, 100, lambda: 0.0) == now + timedelta(minutes=100)
    assert next_start(now, 100, lambda: 1.0) == now + timedelta(minutes=90)


def test_workers_are_told_of_a_sync_now_and_then(folders):
    queue_sync(folders["small"], actor=None)
    assert has_work()
    assert is_wake_due()
    assert not is_wake_due()


def test_a_connection_that_cannot_be_read_fails_and_holds_up_nobody(folders, tmp_path):
    (tmp_path / "large").rename(tmp_path / "moved")
    for connection in folders.values():
        queue_sync(connection, actor=None)
    work_until_idle()
    assert dict(Sync.objects.values_list("connection__slug", "status")) == {"large": "failed", "small": "done"}


def test_one_item_that_breaks_a_parser_in_an_unforeseen_way_fails_alone(folders):
    def prepare(raw, how):
        if raw.name == "a.txt":
            raise ZeroDivisionError
        if raw.name == "b.txt":
            raise IngestError("no_text", "There is none.")

    sync = sync_connection(folders["small"], source=Source(Flaky("x", 0), prepare))
    assert (sync.status, sync.failed) == ("done", 2)
    assert dict(folders["small"].problems.values_list("external_id", "reason")) == {"a": "error", "b": "no_text"}


def test_a_deleted_document_leaves_no_trace_of_its_failures(folders, tmp_path):
    sync_connection(folders["small"])
    (tmp_path / "small" / "00.md").write_bytes(b"")
    sync_connection(folders["small"])
    assert SyncItem.objects.get().state == "failed"
    from retrieval.index.writer import delete_documents

    delete_documents([Document.objects.get(external_id="00.md").pk])
    assert not SyncItem.objects.exists()
    assert not folders["small"].problems.exists()


def test_a_deleted_connection_takes_its_jobs_along(folders):
    queue_sync(folders["small"], actor=None)
    list_next(uuid4())
    assert SyncItem.objects.count() == 3
    folders["small"].delete()
    assert (Sync.objects.count(), SyncItem.objects.count()) == (0, 0)


def test_stored_secrets_reach_the_connector(folders, monkeypatch):
    taken = []
    monkeypatch.setattr(run, "connector_for", lambda it: taken.append(it) or Flaky("x", 0))
    from corecube.connectors import connector_for

    git = Connection(slug="g", kind="git", config={"url": "https://example.org/r.git"})
    git.sealed_secrets = seal({"token": "zanzibar"})
    assert "zanzibar" not in repr(connector_for(git))
    git.sealed_secrets = "nonsense"
    with pytest.raises(Exception, match="cannot be decrypted"):
        connector_for(git)


def test_an_item_that_a_worker_ended_over_is_tried_by_itself(folders):
    sync = queue_sync(folders["large"], actor=None)
    list_next(uuid4())
    for attempt in range(1, claims.MAX_ATTEMPTS + 1):
        worker = uuid4()
        claimed = claims.claim(sync, worker, limit=5)
        # The first time nobody knows which of them it is; then the worker dies over the first one alone.
        assert len(claimed) == (5 if attempt == 1 else 1)
        while attempt > 1 and claimed[0].external_id != "00.md":
            _finish(sync, worker, claimed)
            claimed = claims.claim(sync, worker)
        if attempt == 1:
            _finish(sync, worker, claims.claim(sync, worker))
        SyncItem.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
        claims.release_lost()
    sync.refresh_from_db()
    assert (sync.failed, sync.added) == (1, 39)
    assert SyncItem.objects.get(state="failed").external_id == "00.md"


def _finish(sync, worker, claimed):
    for item in claimed:
        claims.finish(item.pk, worker, sync=sync, outcome=SyncItem.Outcome.ADDED)


def test_of_a_step_that_hangs_over_one_item_that_one_fails_and_the_others_go_back(folders):
    sync = queue_sync(folders["small"], actor=None)
    worker = uuid4()
    list_next(worker)
    first, *_ = claims.claim(sync, worker)
    release_overdue(sync.pk, worker, Step(Doing.READING, (first.pk,), 3.0, 0.0), "It hung.")
    states = SyncItem.objects.order_by("pk").values_list("state", "reason", "message", "attempts", "worker")
    assert list(states) == [("failed", "too_slow", "It hung.", 1, None), *[("queued", "", "", 0, None)] * 2]


def test_of_a_step_that_hangs_over_several_items_each_is_tried_by_itself(folders):
    sync = queue_sync(folders["small"], actor=None)
    worker = uuid4()
    list_next(worker)
    claimed = claims.claim(sync, worker)
    release_overdue(sync.pk, worker, Step(Doing.EMBEDDING, tuple(it.pk for it in claimed[:2]), 3.0, 0.0), "It hung.")
    states = SyncItem.objects.order_by("pk").values_list("state", "reason", "attempts")
    assert list(states) == [*[("queued", "lost", 1)] * 2, ("queued", "", 0)]
    assert [len(claims.claim(sync, uuid4())) for _ in range(4)] == [1, 1, 1, 0]


def test_a_step_is_overdue_only_without_progress():
    steps = Steps(seconds=0.2)
    assert steps.overdue() is None
    steps.begin(Doing.EMBEDDING, [1])
    for _ in range(4):
        time.sleep(0.1)
        steps.progress()
        assert steps.overdue() is None
    time.sleep(0.3)
    assert steps.overdue().claims == (1,)
    steps.begin(Doing.PREPARING, [2], seconds=100)
    time.sleep(0.3)
    assert steps.overdue() is None
    steps.rest()
    assert steps.overdue() is None


def test_after_the_end_no_step_begins_or_goes_on():
    steps = Steps(seconds=1)
    steps.begin(Doing.EMBEDDING, [1])
    steps.is_ended = True
    for call in (steps.progress, steps.require_wanted, lambda: steps.begin(Doing.STORING, [1])):
        with pytest.raises(SyncEndedError):
            call()


def test_a_sync_is_cancelled_only_when_the_last_worker_has_stopped(folders):
    sync = queue_sync(folders["small"], actor=None)
    first, second = uuid4(), uuid4()
    list_next(first)
    claims.claim(sync, first, limit=1)
    claims.claim(sync, second, limit=1)
    assert cancel_sync(sync, actor=None).status == "cancelling"
    # What nobody has in hand is forgotten at once, and nothing more can be claimed or begun.
    assert sync.items.count() == 2
    assert claims.next_sync() is None
    queue_sync(folders["small"], actor=None)
    assert startable() == []
    claims.delete_claimed(sync, first)
    assert cancel_sync(sync, actor=None).status == "cancelling"
    claims.delete_claimed(sync, second)
    finish_all_cancelled()
    sync.refresh_from_db()
    assert (sync.status, sync.finished_at is None, sync.items.count()) == ("cancelled", False, 0)
    assert len(startable()) == 1


def test_a_sync_whose_workers_are_lost_is_cancelled_at_the_next_look(folders):
    sync = queue_sync(folders["small"], actor=None)
    worker = uuid4()
    list_next(worker)
    claimed = claims.claim(sync, worker)
    assert cancel_sync(sync, actor=None).status == "cancelling"
    finish_all_cancelled()
    SyncItem.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    finish_all_cancelled()
    sync.refresh_from_db()
    assert sync.status == "cancelled"
    with pytest.raises(claims.ClaimLostError):
        claims.finish(claimed[0].pk, worker, sync=sync, outcome=SyncItem.Outcome.ADDED)


def test_embedding_ends_before_the_next_batch_of_a_cancelled_sync(folders, monkeypatch):
    calls = []

    class Cancelling(HashEncoder):
        batching = Batching(texts=1, calls=1)

        def encode_documents(self, texts):
            calls.append(len(texts))
            monkeypatch.setattr(Steps, "is_ended", True)
            return super().encode_documents(texts)

    encoder = Cancelling()
    monkeypatch.setattr(active, "encoder", lambda *_: encoder)
    sync = sync_connection(folders["large"])
    assert (calls, Document.objects.count(), sync.added) == ([1], 0, 0)


def test_a_document_that_the_database_refuses_fails_alone(folders):
    def prepare(raw, how):
        prepared = prepare_raw(raw, how)
        return replace(prepared, title="\0") if raw.name == "a.txt" else prepared

    sync = sync_connection(folders["small"], source=Source(Flaky("x", 0), prepare))
    assert (sync.status, sync.added, sync.failed) == ("done", 1, 1)
    assert dict(folders["small"].problems.values_list("external_id", "reason")) == {"a": "error"}
