"""Where syncs stand."""

from datetime import UTC, datetime, timedelta

import pytest

from corecube.models import Connection
from explorer.pages.connections.jobs import stage_rows, sync_row, wait_words
from retrieval.ingest.jobs import JobState, Wait, WaitReason
from retrieval.models import Sync

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def sync(*, items=None, chunks=(0, 0), left=None, **fields):
    """Return a job with its items by stage, its chunks that are embedded and in hand, and its seconds left."""
    docs = Connection(slug="docs", name="Docs")
    row = Sync(**{"connection": docs, "status": Sync.Status.RUNNING, "queued_at": NOW, "started_at": NOW, **fields})
    rate = row.added / 2
    return JobState(
        row,
        row.status,
        items or {},
        documents_per_second=rate,
        chunks_per_second=rate * 3,
        retryable=0,
        chunks_in_hand=chunks[1],
        chunks_embedded=chunks[0],
        seconds_left=left,
    )


@pytest.mark.parametrize(("seconds", "words"), [(8.24, "8.2 s"), (185, "3 min 5 s")])
def test_a_sync_at_work_counts_its_time_up_to_now(seconds, words):
    row = sync_row(sync(), NOW + timedelta(seconds=seconds), known=0)
    assert (row["seconds"], row["is_open"]) == (words, True)


def test_a_sync_that_waits_has_taken_no_time():
    row = sync_row(sync(status=Sync.Status.QUEUED, started_at=None), NOW + timedelta(hours=2), known=0)
    assert (row["seconds"], row["since"], row["is_open"]) == ("", "2 hours ago", True)


def test_a_finished_sync_is_closed():
    row = sync_row(sync(status=Sync.Status.DONE, finished_at=NOW + timedelta(seconds=2)), NOW, known=5)
    assert (row["seconds"], row["is_open"], row["progress"], row["tone"]) == ("2.0 s", False, None, "good")
    assert row["label"] == "done"


@pytest.mark.parametrize(
    ("failed", "kind", "label"),
    [
        (1, Sync.Kind.FULL, "done with 1 problem"),
        (4, Sync.Kind.RETRY, "done with 4 problems"),
        (4, Sync.Kind.DRY_RUN, "done, 4 cannot be indexed"),
    ],
)
def test_what_could_not_be_taken_in_shows_in_the_state(failed, kind, label):
    row = sync_row(sync(status=Sync.Status.DONE, failed=failed, kind=kind), NOW, known=0)
    assert (row["status"], row["label"], row["tone"]) == ("done", label, "warn")
    assert sync_row(sync(failed=failed, kind=kind), NOW, known=0)["label"] == "running"


def test_progress_is_told_only_against_what_was_known_before():
    assert sync_row(sync(seen=3, unchanged=3), NOW, known=4)["progress"] == 75.0
    assert sync_row(sync(seen=3, added=3), NOW, known=4)["progress"] is None


def test_progress_is_exact_once_the_source_is_listed():
    assert sync_row(sync(seen=8, added=1, unchanged=4, failed=1, listed_at=NOW), NOW, known=0)["progress"] == 75.0


def test_progress_counts_what_is_embedded_of_documents_in_hand():
    # 1 of 4 is done; of 2 in hand three quarters are embedded: (1 + 1.5) / 4.
    half = sync(seen=4, added=1, listed_at=NOW, items={"embedding": 2, "queued": 1}, chunks=(75, 100))
    assert sync_row(half, NOW, known=0)["progress"] == 62.5


def test_a_sync_at_work_says_what_it_is_at_and_how_fast():
    working = sync(stage=Sync.Stage.WORKING, added=4, items={"queued": 200, "parsing": 3, "embedding": 40})
    row = sync_row(working, NOW, known=0)
    assert (row["stage"], row["rate"]) == ("3 parsing, 40 embedding, 200 queued", "2.0 documents/s, 6.0 chunks/s")
    embedding = sync(stage=Sync.Stage.WORKING, items={"embedding": 31, "queued": 2}, chunks=(120, 1256))
    assert sync_row(embedding, NOW, known=0)["stage"] == "31 embedding (120 of 1,256 chunks), 2 queued"
    assert stage_rows(embedding)[1] == ("embedding (120 of 1,256 chunks)", 31)
    listing = sync(stage=Sync.Stage.LISTING, items={"queued": 5})
    assert sync_row(listing, NOW, known=0)["stage"] == "listing: 5 queued"
    assert sync_row(sync(status=Sync.Status.DONE, items={"failed": 1}), NOW, known=0)["stage"] == ""


@pytest.mark.parametrize("status", Sync.Status)
def test_every_status_has_a_tone(status):
    assert sync_row(sync(status=status), NOW, known=0)["status"] == status


def test_the_time_left_is_estimated_until_it_is_known():
    def left(**fields):
        return sync_row(sync(stage=Sync.Stage.WORKING, **fields), NOW, known=0)["left"]

    waiting = {"queued": 50, "parsing": 10}
    assert left(listed_at=NOW, items=waiting, left=120.0) == "about 2 min left"
    assert left(listed_at=NOW, items=waiting) == "estimating time left"
    assert left(items=waiting) == "estimating time left"
    assert left(listed_at=NOW, items={"failed": 3}) == ""
    assert left(listed_at=NOW, status=Sync.Status.DONE) == ""
    assert left(items=waiting, kind=Sync.Kind.DRY_RUN) == ""


def test_stages_are_listed_in_the_order_in_which_items_pass():
    job = sync(items={"storing": 2, "queued": 9, "failed": 1, "parsing": 4})
    assert stage_rows(job) == [("queued", 9), ("parsing", 4), ("storing", 2), ("failed", 1)]


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (Wait(WaitReason.WORKER), "Next in the queue. It starts when a worker is free."),
        (Wait(WaitReason.WORKER, 1), "Waiting for a free worker, after 1 sync."),
        (Wait(WaitReason.WORKER, 3), "Waiting for a free worker, after 3 syncs."),
        (Wait(WaitReason.SAME_CONNECTION), "Waiting for another sync of this connection to finish."),
    ],
)
def test_what_a_queued_sync_waits_for_is_a_sentence(wait, words):
    assert wait_words(wait) == words


@pytest.mark.parametrize("reason", WaitReason)
def test_every_reason_to_wait_has_its_words(reason):
    assert wait_words(Wait(reason)).endswith((".", "?"))


def test_a_dry_run_says_what_it_found():
    done = sync(kind=Sync.Kind.DRY_RUN, status=Sync.Status.DONE, added=12, changed=3, deleted=1)
    assert sync_row(done, NOW, known=0)["found"] == "Would add 12, change 3, delete 1."
    assert sync_row(sync(status=Sync.Status.DONE, added=12), NOW, known=0)["found"] == ""
