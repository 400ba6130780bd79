"""Jobs, for admins."""

import pytest

from corecube.models import ApiKey, AuditEvent, Compartment
from retrieval.ingest import tasks
from retrieval.models import Document, Sync, SyncItem
from retrieval.models.document import document_id

JOBS = "/api/v1/jobs"


@pytest.fixture(autouse=True)
def no_queue(monkeypatch):
    monkeypatch.setattr(tasks.work, "apply_async", lambda **_: None)


@pytest.fixture
def failed(world):
    """A sync of the runbooks in which one file failed."""
    sync = world.runbooks.syncs.get()
    SyncItem.objects.create(
        sync=sync,
        document_id=document_id(world.runbooks.pk, "x.md"),
        external_id="x.md",
        item={"name": "x.md"},
        state=SyncItem.State.FAILED,
        reason="timeout",
        message="It took too long.",
    )
    return sync


def test_an_admin_sees_the_jobs_of_all_connections(world, get):
    jobs = get(JOBS, world.key("alice")).json()["jobs"]
    assert [(job["connection"], job["state"], job["added"]) for job in jobs] == [
        ("ledger", "done", 1),
        ("vault", "done", 1),
        ("runbooks", "done", 2),
    ]
    only = get(f"{JOBS}?connection=vault", world.key("alice")).json()["jobs"]
    assert [job["connection"] for job in only] == ["vault"]


def test_a_job_lists_its_errors(world, failed, get):
    job = get(f"{JOBS}/{failed.pk}", world.key("alice")).json()
    error = {"item": "x.md", "reason": "timeout", "message": "It took too long.", "advice": "", "retryable": True}
    assert job["errors"] == [error]
    assert job["retryable"] == 1


def test_what_failed_is_tried_again(world, failed, post):
    response = post(f"{JOBS}/{failed.pk}/retry", {}, world.key("alice"))
    assert (response.status_code, response.json()["kind"], response.json()["seen"]) == (202, "retry", 1)
    again = post(f"{JOBS}/{failed.pk}/retry", {}, world.key("alice"))
    assert (again.status_code, again.json()["error"]["code"]) == (422, "invalid_request")


def test_a_queued_job_is_cancelled(world, post):
    secret = world.key("alice")
    job = post("/api/v1/connections/runbooks/dry-run", {}, secret)
    assert (job.status_code, job.json()["state"], job.json()["kind"]) == (202, "queued", "dry_run")
    assert post(f"{JOBS}/{job.json()['id']}/cancel", {}, secret).json()["state"] == "cancelled"
    assert AuditEvent.objects.filter(action="connection.sync_cancelled", subject="runbooks").exists()
    assert Document.objects.count() == 4


def test_a_job_that_has_ended_stays_as_it_is(world, post):
    sync = world.runbooks.syncs.get()
    assert post(f"{JOBS}/{sync.pk}/cancel", {}, world.key("alice")).json()["state"] == "done"


def test_nobody_but_an_admin_learns_of_jobs(world, get, post):
    sync = world.runbooks.syncs.get()
    for name in ("bob", "charlie"):
        secret = world.key(name)
        answers = [
            get(JOBS, secret),
            get(f"{JOBS}/{sync.pk}", secret),
            post(f"{JOBS}/{sync.pk}/cancel", {}, secret),
            post(f"{JOBS}/{sync.pk}/retry", {}, secret),
            post("/api/v1/connections/runbooks/dry-run", {}, secret),
        ]
        assert [answer.status_code for answer in answers] == [403] * 5


def test_an_admins_narrowed_key_sees_no_other_jobs(world, get):
    key, secret = ApiKey.issue(user=world.alice, name="narrow")
    key.compartments.add(Compartment.objects.get(slug="finance"))
    assert [job["connection"] for job in get(JOBS, secret).json()["jobs"]] == ["ledger"]
    assert get(f"{JOBS}/{world.runbooks.syncs.get().pk}", secret).status_code == 404
    assert get(f"{JOBS}/{Sync.objects.get(connection=world.ledger).pk}", secret).status_code == 200
