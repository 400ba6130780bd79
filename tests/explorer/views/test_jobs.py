"""The page of jobs, for admins."""

import pytest

from retrieval import tasks
from retrieval.ingest.services import queue_sync


@pytest.fixture(autouse=True)
def no_queue(monkeypatch):
    monkeypatch.setattr(tasks.work, "apply_async", lambda **_: None)


def test_jobs_are_listed_and_asked_for_again_only_while_one_is_open(browse, world):
    alice = browse("alice")
    page = alice.get("/jobs/").content.decode()
    assert page.count("/sources/runbooks/") == 1
    assert "every 2s" not in page
    queue_sync(world.runbooks, actor=None)
    fragment = alice.get("/jobs/", headers={"HX-Request": "true"}).content.decode()
    assert "every 2s" in fragment
    assert "<html" not in fragment


def test_a_job_is_cancelled_from_its_source(browse, world):
    sync = queue_sync(world.runbooks, actor=None)
    alice = browse("alice")
    assert f"/jobs/{sync.pk}/cancel/" in alice.get("/sources/runbooks/").content.decode()
    assert alice.post(f"/jobs/{sync.pk}/cancel/").headers["Location"] == "/sources/runbooks/"
    sync.refresh_from_db()
    assert sync.status == "cancelled"


def test_a_retry_of_nothing_says_so(browse, world):
    response = browse("alice").post(f"/jobs/{world.runbooks.syncs.get().pk}/retry/", follow=True)
    assert "Nothing of this sync can be tried again." in response.content.decode()


def test_a_dry_run_is_queued_from_the_source(browse, world):
    browse("alice").post("/sources/runbooks/sync/", {"dry_run": "yes"})
    assert world.runbooks.syncs.get(status="queued").kind == "dry_run"


@pytest.mark.parametrize("name", ["bob", "charlie"])
def test_jobs_are_for_admins(browse, world, name):
    visitor = browse(name)
    sync = queue_sync(world.runbooks, actor=None)
    answers = [visitor.get("/jobs/"), visitor.post(f"/jobs/{sync.pk}/cancel/"), visitor.post(f"/jobs/{sync.pk}/retry/")]
    assert {answer.status_code for answer in answers} <= {403, 404}
    sync.refresh_from_db()
    assert sync.status == "queued"
