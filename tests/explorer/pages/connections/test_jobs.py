"""The page of jobs, for admins."""

from uuid import uuid4

import pytest

from retrieval.ingest import tasks
from retrieval.ingest.services import cancel_sync, queue_sync
from retrieval.ingest.sync import sync_connection
from retrieval.models import Sync, SyncItem, SyncProblem
from retrieval.models.document import document_id


@pytest.fixture(autouse=True)
def no_queue(monkeypatch):
    monkeypatch.setattr(tasks.work, "apply_async", lambda **_: None)


def test_jobs_are_listed_and_asked_for_again_only_while_one_is_open(browse, world):
    alice = browse("alice")
    page = alice.get("/jobs/").content.decode()
    assert page.count('href="/connections/runbooks/"') == 1
    assert "every 2s" not in page
    queue_sync(world.runbooks, actor=None)
    fragment = alice.get("/jobs/", headers={"HX-Request": "true"}).content.decode()
    assert "every 2s" in fragment
    assert "<html" not in fragment


def test_a_job_is_cancelled_from_its_connection(browse, world):
    sync = queue_sync(world.runbooks, actor=None)
    alice = browse("alice")
    assert f"/jobs/{sync.pk}/cancel/" in alice.get("/connections/runbooks/").content.decode()
    assert alice.post(f"/jobs/{sync.pk}/cancel/").headers["Location"] == "/connections/runbooks/"
    sync.refresh_from_db()
    assert sync.status == "cancelled"


def test_a_job_that_is_being_cancelled_says_so_until_its_workers_have_stopped(browse, world):
    sync = Sync.objects.create(connection=world.runbooks, status="cancelling")
    alice = browse("alice")
    for path in ("/jobs/", "/connections/runbooks/", f"/jobs/{sync.pk}/"):
        page = alice.get(path).content.decode()
        assert "cancelling" in page
        assert "every 2s" in page
        assert f"/jobs/{sync.pk}/cancel/" not in page
    assert "Stopping. This takes a few seconds." in page
    assert f"/jobs/{sync.pk}/" in alice.get("/jobs/?state=cancelling").content.decode()
    # Nobody works on it here.
    alice.post(f"/jobs/{sync.pk}/cancel/")
    sync.refresh_from_db()
    assert sync.status == "cancelled"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("full", "Scans the entire source."),
        ("changes", "Scans only changes since the previous sync."),
        ("retry", "Retries only items that failed before."),
        ("dry_run", "Scans the entire source without storing anything."),
    ],
)
def test_a_jobs_page_says_how_much_of_the_source_it_looks_at(browse, world, kind, said):
    sync = Sync.objects.create(connection=world.runbooks, kind=kind)
    assert f'<p class="soft" id="sync-description">{said}' in browse("alice").get(f"/jobs/{sync.pk}/").content.decode()


def test_a_retry_of_nothing_says_so(browse, world):
    response = browse("alice").post(f"/jobs/{world.runbooks.syncs.get().pk}/retry/", follow=True)
    assert "No item of this sync can be retried." in response.content.decode()


def test_a_dry_run_is_queued_from_the_connection(browse, world):
    browse("alice").post("/connections/runbooks/sync/", {"dry_run": "yes"})
    assert world.runbooks.syncs.get(status="queued").kind == "dry_run"


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_jobs_are_for_admins(browse, world, name):
    visitor = browse(name)
    sync = queue_sync(world.runbooks, actor=None)
    answers = [visitor.get("/jobs/"), visitor.post(f"/jobs/{sync.pk}/cancel/"), visitor.post(f"/jobs/{sync.pk}/retry/")]
    assert {answer.status_code for answer in answers} <= {403, 404}
    sync.refresh_from_db()
    assert sync.status == "queued"


def failed_sync(world, *names):
    """Return an ended sync of which these items failed and can be tried again."""
    sync = world.runbooks.syncs.get()
    for name in names:
        SyncItem.objects.create(
            sync=sync,
            document_id=document_id(world.runbooks.pk, name),
            external_id=name,
            item={"name": name},
            state="failed",
            reason="lost",
            message=f"{name} is broken.",
        )
        SyncProblem.objects.create(
            connection=world.runbooks, external_id=name, reason="lost", message=f"{name} is broken."
        )
    return sync


def test_jobs_are_narrowed_by_state_and_connection(browse, world):
    alice = browse("alice")
    queue_sync(world.vault, actor=None)

    def listed(query):
        return [(row["slug"], row["status"]) for row in alice.get(f"/jobs/?{query}").context["jobs"]]

    assert listed("state=open") == listed("state=queued") == [("vault", "queued")]
    assert listed("connection=vault") == [("vault", "queued"), ("vault", "done")]
    assert listed("state=done&connection=ledger") == [("ledger", "done")]
    assert len(listed("state=nonsense")) == 4
    assert listed("connection=%00no") == []
    assert "No matching jobs" in alice.get("/jobs/?connection=nowhere").content.decode()
    fragment = alice.get("/jobs/?state=open", headers={"HX-Request": "true"}).content.decode()
    assert "state=open&amp;page=1" in fragment


def test_the_list_takes_the_same_statements_for_any_number_of_jobs(browse, world, django_assert_num_queries):
    alice = browse("alice")
    # Session, user, count, syncs, stages, retryable, waits, and the filter's connections.
    for connection in (world.vault, world.ledger):
        queue_sync(connection, actor=None)
        with django_assert_num_queries(7):
            alice.get("/jobs/")


def test_a_job_has_a_page_with_its_figures_and_errors(browse, world):
    sync = failed_sync(world, "bad.md")
    page = browse("alice").get(f"/jobs/{sync.pk}/")
    text = page.content.decode()
    assert page.status_code == 200
    assert "bad.md is broken." in text
    assert f'action="/jobs/{sync.pk}/retry/"' in text
    assert "every 2s" not in text


def test_errors_are_paged(browse, world, monkeypatch):
    monkeypatch.setattr("explorer.pages.connections.jobs._ERRORS_PER_PAGE", 2)
    sync = failed_sync(world, "a.md", "b.md", "c.md")
    alice = browse("alice")
    assert "?page=2#errors" in alice.get(f"/jobs/{sync.pk}/").content.decode()
    second = alice.get(f"/jobs/{sync.pk}/?page=2").content.decode()
    assert "c.md is broken." in second
    assert "a.md is broken." not in second


def test_an_open_job_is_asked_for_again_and_says_when_it_ended(browse, world):
    alice = browse("alice")
    sync = queue_sync(world.runbooks, actor=None)
    assert "every 2s" in alice.get(f"/jobs/{sync.pk}/").content.decode()
    cancel_sync(sync, actor=None)
    fragment = alice.get(f"/jobs/{sync.pk}/", headers={"HX-Request": "true"}).content.decode()
    assert "every 2s" not in fragment
    assert 'hx-swap-oob="true">Sync of Runbooks: cancelled.' in fragment


def test_a_queued_job_says_what_it_waits_for(browse, world):
    alice = browse("alice")
    queue_sync(world.runbooks, actor=None)
    second = queue_sync(world.vault, actor=None)
    assert "Waiting for a free worker, after 1 sync." in alice.get(f"/jobs/{second.pk}/").content.decode()
    assert "Next in the queue" in alice.get("/connections/runbooks/").content.decode()


def test_one_item_is_tried_again_from_the_connections_problems(browse, world):
    sync = failed_sync(world, "a.md", "b.md")
    alice = browse("alice")
    assert 'name="item" value="b.md"' in alice.get("/connections/runbooks/").content.decode()
    alice.post(f"/jobs/{sync.pk}/retry/", {"item": "b.md"})
    retry = world.runbooks.syncs.get(kind="retry")
    assert list(retry.items.values_list("external_id", flat=True)) == ["b.md"]
    assert list(sync.items.values_list("external_id", flat=True)) == ["a.md"]


def test_a_dry_run_shows_what_it_found(browse, world):
    (world.root / "runbooks" / "new.md").write_text("# New\n\nWords.\n")
    (world.root / "runbooks" / "scan.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    sync = queue_sync(world.runbooks, actor=None, dry_run=True)
    sync_connection(world.runbooks, sync=sync)
    for path in (f"/jobs/{sync.pk}/", "/connections/runbooks/"):
        text = browse("alice").get(path).content.decode()
        assert "Would add 1, change 0, delete 0; 1 cannot be indexed." in text
        assert "new.md" in text
        assert "This is an image. Images are not supported." in text
        assert "done, 1 cannot be indexed" in text
        assert "Try scan.png again" not in text


def test_a_job_that_is_not_there_is_not_found(browse, world):
    assert browse("alice").get(f"/jobs/{uuid4()}/").status_code == 404
    assert browse("bob").get(f"/jobs/{world.runbooks.syncs.get().pk}/").status_code == 404


def test_what_failed_in_a_sync_at_work_is_said_to_wait_for_its_end(browse, world):
    sync = failed_sync(world, "a.md")
    alice = browse("alice")
    for path in (f"/jobs/{sync.pk}/", "/connections/runbooks/"):
        assert "You can retry items with temporary errors here when" not in alice.get(path).content.decode()
    Sync.objects.filter(pk=sync.pk).update(status="running")
    for path in (f"/jobs/{sync.pk}/", "/connections/runbooks/"):
        page = alice.get(path).content.decode()
        assert "You can retry items with temporary errors here when" in page
        assert "Try a.md again" not in page
