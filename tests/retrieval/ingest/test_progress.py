"""How far a sync is, while its worker parses, embeds and stores."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from django.utils import timezone

from corecube.connectors.types import SourceItem
from corecube.models import Compartment, Connection
from explorer.pages.connections.jobs import sync_row
from retrieval.encoders.protocol import Batching
from retrieval.index import active
from retrieval.ingest.dispatch import list_next, process_next
from retrieval.ingest.jobs import job_states
from retrieval.ingest.run import Source
from retrieval.ingest.services import queue_sync
from retrieval.ingest.sync import sync_connection
from retrieval.models import Sync, SyncItem
from tests.fakes import HashEncoder

SECONDS_A_CALL = 10.0
START = datetime(2026, 6, 1, tzinfo=UTC).timestamp()


class SlowEncoder(HashEncoder):
    """Takes ten seconds for four texts, by the clock that it is handed, and looks at the job before each."""

    batching = Batching(texts=4, calls=1)

    def __init__(self, clock, look):
        super().__init__()
        self.clock = clock
        self.look = look

    def encode_documents(self, texts):
        self.look()
        self.clock.now += SECONDS_A_CALL
        return super().encode_documents(texts)


class Clock:
    """Stands in for the module `time` where progress is timed."""

    now = START

    def time(self):
        return self.now

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("retrieval.ingest.work.time", clock)
    return clock


@pytest.fixture
def folder(db, tmp_path):
    compartment = Compartment.objects.create(slug="c", name="C")
    root = tmp_path / "papers"
    root.mkdir()
    return Connection.objects.create(
        slug="papers", name="Papers", kind="folder", config={"path": str(root)}, compartment=compartment
    )


@pytest.fixture
def looks(clock, monkeypatch):
    """What the job was each time the slow encoder was called."""
    seen = []

    def look():
        now = datetime.fromtimestamp(clock.now, tz=UTC)
        job = job_states(Sync.objects.filter(status="running").select_related("connection"), now)[0]
        seen.append((job, sync_row(job, now, known=0)))

    encoder = SlowEncoder(clock, look)
    # In this thread, one call after the other: another thread has another connection, and the clock is one.
    monkeypatch.setattr("retrieval.ingest.vectors.effective_calls", lambda _: 1)
    monkeypatch.setattr(active, "encoder", lambda *_: encoder)
    return seen


def write(connection, name, words):
    """Write a document of that many words, no two chunks of it alike."""
    text = " ".join(f"{name}{number % 97}" for number in range(words))
    Path(connection.config["path"], f"{name}.txt").write_text(text)


def test_a_long_document_shows_how_many_of_its_chunks_are_embedded(folder, looks):
    write(folder, "long", 20_000)
    sync = sync_connection(folder)
    assert sync.chunks > 40
    jobs = [job for job, _ in looks]
    assert {job.chunks_in_hand for job in jobs} == {sync.chunks}
    assert [job.chunks_embedded for job in jobs] == list(range(0, sync.chunks, 4))
    assert looks[3][1]["stage"] == f"1 embedding (12 of {sync.chunks} chunks)"
    percents = [row["progress"] for _, row in looks]
    assert percents == sorted(percents)
    assert percents[-1] > 90


def test_the_time_left_is_estimated_first_and_then_near_to_what_it_takes(folder, looks):
    write(folder, "long", 20_000)
    sync_connection(folder)
    assert looks[0][1]["left"] == "estimating time left"
    for place, (job, _) in enumerate(looks[1:], start=1):
        assert job.seconds_left == pytest.approx((len(looks) - place) * SECONDS_A_CALL, rel=0.1)


def test_with_many_documents_the_estimate_shrinks_from_batch_to_batch(folder, looks, monkeypatch):
    monkeypatch.setattr("retrieval.ingest.work.BATCH_CHUNKS", 8)
    for number in range(40):
        write(folder, f"d{number:02}", 900)
    sync_connection(folder)
    told = [job.seconds_left for job, _ in looks]
    assert told[0] is None
    known = [seconds for seconds in told if seconds is not None]
    assert len(known) == len(told) - 1
    assert known == sorted(known, reverse=True)
    assert known[0] == pytest.approx(SECONDS_A_CALL * (len(looks) - 1), rel=0.1)


def test_what_is_seen_is_done_or_at_one_of_the_stages(folder, looks, monkeypatch):
    monkeypatch.setattr("retrieval.ingest.work.BATCH_CHUNKS", 4)
    for number in range(12):
        write(folder, f"d{number:02}", 900)
    write(folder, "none", 0)
    sync_connection(folder)
    write(folder, "d03", 1500)
    sync_connection(folder)
    assert len(looks) > 5
    for job, _ in looks:
        done = job.sync.added + job.sync.changed + job.sync.unchanged
        assert done + sum(job.items.values()) == job.sync.seen
        assert job.items.get("failed", 0) == job.sync.failed


def test_parsed_items_are_no_more_said_to_be_parsed(folder, clock):
    """A slow parser is seen to come forward too: each item moves on when it is parsed."""
    at_each = []

    class Slow:
        def check(self):
            pass

        def items(self):
            for number in range(5):
                yield SourceItem(str(number), f"{number}.txt", uri="", locator=str(number), modified_at=None)

        def read(self, item):
            clock.now += 30
            job = job_states(Sync.objects.select_related("connection"), timezone.now())[0]
            at_each.append(dict(job.items))
            return f"Words of {item.external_id}.".encode()

    folder.language = "english"
    sync_connection(folder, source=Source(Slow()))
    assert at_each[0] == {"parsing": 5}
    assert at_each[-1] == {"parsing": 1, "embedding": 4}


def test_items_are_being_stored_once_all_chunks_are_embedded(folder, monkeypatch):
    write(folder, "one", 600)
    stages = []
    from retrieval.ingest import encode

    store = encode.store_documents

    def noting(*arguments, **more):
        stages.extend(SyncItem.objects.values_list("stage", "chunks", "embedded"))
        store(*arguments, **more)

    monkeypatch.setattr(encode, "store_documents", noting)
    sync_connection(folder)
    assert stages == [("storing", 2, 2)]


def test_workers_add_to_one_pace(folder, clock):
    for number in range(3):
        write(folder, f"d{number}", 100)
    queue_sync(folder, actor=None)
    list_next(uuid4())
    process_next(uuid4())
    process_next(uuid4())
    pace = Sync.objects.get().pace
    assert pace[-1][1] == 3
    assert pace[-1][3] == 3
