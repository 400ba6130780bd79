"""`manage.py jobs`."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from retrieval.ingest import tasks
from retrieval.ingest.services import queue_sync
from retrieval.ingest.sync import sync_connection


@pytest.fixture(autouse=True)
def no_queue(monkeypatch):
    monkeypatch.setattr(tasks.work, "apply_async", lambda **_: None)


def jobs(*arguments):
    out = StringIO()
    call_command("jobs", *arguments, stdout=out)
    return out.getvalue()


def test_jobs_are_listed_with_their_states(world):
    queue_sync(world.vault, actor=None)
    lines = jobs().splitlines()
    assert len(lines) == 4
    assert "queued" in lines[0]
    assert "2 seen, 2 added" in lines[-1]
    assert len(jobs("--open").splitlines()) == 1


def test_a_job_is_shown_with_its_errors_retried_and_cancelled(world):
    (world.root / "runbooks" / "empty.md").write_text("")
    sync = sync_connection(world.runbooks)
    shown = jobs(str(sync.pk))
    assert "done with 1 problem" in shown
    assert "  empty.md: empty: The file is empty. Add text to the file" in shown
    assert "to retry" not in shown
    with pytest.raises(CommandError, match="Correct the failed items in the source"):
        jobs("--retry", str(sync.pk))
    # As a parser leaves it that ran out of time.
    sync.items.update(reason="too_slow")
    assert "1 to retry" in jobs(str(sync.pk))
    assert "queued" in jobs("--retry", str(sync.pk))
    with pytest.raises(CommandError, match="No item of this sync can be retried"):
        jobs("--retry", str(sync.pk))
    waiting = world.runbooks.syncs.get(status="queued")
    assert "cancelled" in jobs("--cancel", str(waiting.pk))


def test_an_unknown_job_is_an_error(db):
    with pytest.raises(CommandError, match="There is no job"):
        jobs("00000000-0000-0000-0000-000000000000")
