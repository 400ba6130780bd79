import os
import struct
import threading
from contextlib import suppress

import pytest
from django.db import connection as database
from django.db import connections
from django.utils import timezone

from corecube.connectors.types import ItemProblem, SourceItem
from corecube.errors import ConfigError, UnknownConnectionError
from corecube.models import Compartment, Connection
from retrieval.errors import ConnectionDisabledError, SyncRunningError
from retrieval.index import active
from retrieval.index.writer import fold_term_counts
from retrieval.ingest.dispatch import startable
from retrieval.ingest.run import Source
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Document, Embedding, OutboxEntry, Sync, TermFrequency
from tests.fakes import HashEncoder


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\nText of page {number} about alpha.\n")
    return folder


@pytest.fixture
def source(db, root):
    compartment = Compartment.objects.create(slug="c", name="C")
    return Connection.objects.create(
        slug="docs", name="Docs", kind="folder", config={"path": str(root)}, compartment=compartment
    )


class Listing:
    """A connector whose items are told; an item's text is its locator."""

    def __init__(self, *entries):
        self.entries = entries

    def check(self):
        pass

    def items(self):
        yield from self.entries

    def read(self, item):
        return item.locator.encode()


def entry(external_id, text="Some text."):
    return SourceItem(external_id, f"{external_id}.txt", uri="", locator=text, modified_at=None)


def counts(sync):
    return {name: getattr(sync, name) for name in ("seen", "added", "changed", "unchanged", "failed", "deleted")}


def term_counts(connection):
    """Return the summed term counts of a connection, as they stand and as they ought to."""
    stored: dict[str, int] = {}
    for lexeme, chunks in TermFrequency.objects.filter(connection_id=connection.pk).values_list("lexeme", "chunks"):
        stored[lexeme] = stored.get(lexeme, 0) + chunks
    with database.cursor() as cursor:
        cursor.execute(
            "SELECT word, ndoc FROM ts_stat(%s)",
            [f"SELECT search FROM retrieval_chunk WHERE connection_id = {connection.pk}"],
        )
        counted = dict(cursor.fetchall())
    counted[""] = Chunk.objects.filter(connection_id=connection.pk).count()
    return {key: value for key, value in stored.items() if value}, {key: it for key, it in counted.items() if it}


def assert_whole(connection):
    """Every chunk has its embedding, every embedding its chunk, and the term counts are what is there."""
    keys = set(Chunk.objects.filter(connection_id=connection.pk).values_list("document_id", "ordinal"))
    assert keys == set(Embedding.objects.filter(connection_id=connection.pk).values_list("document_id", "ordinal"))
    assert {document for document, _ in keys} == set(
        Document.objects.filter(connection=connection).values_list("pk", flat=True)
    )
    stored, counted = term_counts(connection)
    assert stored == counted


def test_a_first_sync_adds_everything(source):
    sync = sync_connection(source)
    assert sync.status == Sync.Status.DONE
    assert counts(sync) == {"seen": 4, "added": 4, "changed": 0, "unchanged": 0, "failed": 0, "deleted": 0}
    assert_whole(source)
    source.refresh_from_db()
    assert source.last_synced_at is not None


def test_a_second_sync_embeds_nothing_and_counts_as_synced(source, monkeypatch):
    first = sync_connection(source)

    class NoEncoder(HashEncoder):
        def encode_documents(self, _):
            raise AssertionError("an unchanged document was embedded again")

    encoder = NoEncoder()
    monkeypatch.setattr(active, "encoder", lambda *_: encoder)
    second = sync_connection(source)
    assert counts(second) == {"seen": 4, "added": 0, "changed": 0, "unchanged": 4, "failed": 0, "deleted": 0}
    assert min(Document.objects.values_list("synced_at", flat=True)) > first.finished_at
    assert_whole(source)


def test_a_changed_document_replaces_its_chunks(source, root):
    sync_connection(source)
    (root / "1.md").write_text("# Page 1\n\nNow about beta.\n")
    assert counts(sync_connection(source))["changed"] == 1
    assert [chunk.text for chunk in Chunk.objects.filter(document__external_id="1.md")] == ["Now about beta."]
    assert_whole(source)


def test_a_document_that_is_gone_is_deleted_with_all_it_owns(source, root):
    sync_connection(source)
    (root / "1.md").unlink()
    sync = sync_connection(source)
    assert sync.deleted == 1
    assert not Document.objects.filter(external_id="1.md").exists()
    assert_whole(source)
    assert OutboxEntry.objects.filter(deleted=True).count() == 1


def test_deleting_more_than_the_guarded_share_asks_first(source, root):
    sync_connection(source)
    for number in range(3):
        (root / f"{number}.md").unlink()
    sync = sync_connection(source)
    assert sync.status == Sync.Status.STOPPED
    assert "3 of 4 documents are gone" in sync.message
    assert Document.objects.count() == 4
    confirmed = Sync(connection=source, allow_deletions=True)
    assert sync_connection(source, sync=confirmed).deleted == 3
    assert Document.objects.count() == 1


def test_a_missing_source_folder_deletes_nothing(source, root):
    sync_connection(source)
    root.rename(root.with_name("moved"))
    with pytest.raises(ConfigError, match="docs does not exist"):
        sync_connection(source)
    assert Document.objects.count() == 4
    assert source.syncs.first().status == Sync.Status.FAILED


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.md", b"", "empty"),
        ("blank.txt", b" \n\t ", "empty"),
        ("corrupt.pdf", b"%PDF-1.7 and then nothing", "corrupt"),
        ("corrupt.docx", b"PK\x03\x04 no zip", "corrupt"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\x00\x00\x00", "unsupported_type"),
        ("random.bin", bytes(range(256)) * 8, "unsupported_type"),
    ],
)
def test_one_bad_file_is_listed_with_its_reason_and_stops_nothing(source, root, name, content, reason):
    (root / name).write_bytes(content)
    sync = sync_connection(source)
    assert sync.status == Sync.Status.DONE
    assert (sync.added, sync.failed) == (4, 1)
    problem = source.problems.get()
    assert (problem.external_id, problem.reason) == (name, reason)
    assert problem.message


_WIDE_FILES = {
    "a.txt": "Draining the queue takes four minutes: zanzibar.\r\n",
    "b.log": "2024-01-01 INFO zanzibar started\r\n",
    "c.md": "# Zanzibar\n\nThe codeword is zanzibar.\n",
    "d.csv": "name;codeword\n1;zanzibar\n",
    "e.json": '{"codeword": "zanzibar"}',
    "f.xml": "<root><codeword>zanzibar</codeword></root>",
    "g.html": "<html><body><p>The codeword is zanzibar</p></body></html>",
    "h.ipynb": '{"cells": [{"cell_type": "markdown", "source": "zanzibar"}], "metadata": {}}',
    "i.py": "codeword = 'zanzibar'\n",
    "j.ini": "[main]\ncodeword = zanzibar\n",
    "k.reg": 'Windows Registry Editor Version 5.00\r\n\r\n"codeword"="zanzibar"\r\n',
    "l.eml": "From: ann@example.com\nSubject: x\n\nThe codeword is zanzibar.\n",
    "without-a-suffix": "The codeword is zanzibar.\n",
}


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_text_in_utf16_and_utf32_without_a_mark_is_taken_in(source, root, encoding):
    for name, text in _WIDE_FILES.items():
        (root / name).write_bytes(text.encode(encoding))
    (root / "numbers.txt").write_bytes(struct.pack("<500h", *range(500)))
    sync = sync_connection(source)
    assert (sync.added, sync.failed) == (4 + len(_WIDE_FILES), 1)
    assert source.problems.get().reason == "unsupported_type"
    found = Chunk.objects.filter(text__contains="zanzibar").values_list("document__external_id", flat=True)
    assert set(found) == set(_WIDE_FILES)


def test_a_file_in_another_encoding_is_read(source, root):
    (root / "latin.txt").write_bytes("Die Prüfung der Kühlanlage kostet 40 Gulden im März.".encode("cp1252"))
    sync_connection(source)
    assert "Prüfung der Kühlanlage" in Chunk.objects.get(document__external_id="latin.txt").text


def test_a_bad_file_keeps_the_version_that_was_good(source, root):
    sync_connection(source)
    (root / "2.md").write_bytes(b"")
    sync = sync_connection(source)
    assert (sync.failed, sync.deleted) == (1, 0)
    assert Document.objects.filter(external_id="2.md").exists()


def test_a_problem_goes_when_the_file_is_mended(source, root):
    (root / "9.md").write_bytes(b"")
    sync_connection(source)
    (root / "9.md").write_text("# Nine\n\nMended.\n")
    sync_connection(source)
    assert not source.problems.exists()


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_a_sync_that_died_half_way_is_taken_up_without_loss_or_doubles(source, monkeypatch, end):
    monkeypatch.setattr("retrieval.ingest.work.BATCH_CHUNKS", 1)

    class DyingEncoder(HashEncoder):
        calls = 0

        def encode_documents(self, texts):
            self.calls += 1
            if self.calls > 2:
                raise end
            return super().encode_documents(texts)

    dying = DyingEncoder()
    working = active.encoder()
    monkeypatch.setattr(active, "encoder", lambda *_: dying)
    with pytest.raises(end):
        sync_connection(source)
    assert Document.objects.count() == 2
    assert_whole(source)
    # The worker's message comes again, and finds the sync to be gone on with.
    assert source.syncs.get().status == Sync.Status.RUNNING

    monkeypatch.setattr(active, "encoder", lambda *_: working)
    sync = sync_connection(source)
    assert counts(sync) == {"seen": 4, "added": 2, "changed": 0, "unchanged": 2, "failed": 0, "deleted": 0}
    assert_whole(source)


@pytest.mark.django_db(transaction=True)
def test_two_syncs_of_one_connection_do_not_run_at_once(source):
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(7301, %s)", [source.pk])
        with pytest.raises(SyncRunningError):
            sync_connection(source)
    finally:
        other.close()
    assert not source.syncs.exists()


def test_an_interrupted_sync_is_closed_by_the_next(source):
    stale = Sync.objects.create(connection=source, status=Sync.Status.RUNNING)
    sync_connection(source)
    stale.refresh_from_db()
    assert (stale.status, stale.message) == (Sync.Status.FAILED, "It was interrupted.")


def test_deleting_a_connection_deletes_its_documents(source):
    sync_connection(source)
    source.delete()
    assert (Document.objects.count(), Chunk.objects.count(), Embedding.objects.count()) == (0, 0, 0)
    assert not TermFrequency.objects.exists()


def test_a_sync_that_is_taken_up_counts_anew(source):
    killed = Sync.objects.create(
        connection=source, status=Sync.Status.RUNNING, is_private=True, seen=9, added=9, chunks=9, message="x"
    )
    sync = sync_connection(source, sync=killed)
    assert counts(sync) == {"seen": 4, "added": 4, "changed": 0, "unchanged": 0, "failed": 0, "deleted": 0}
    assert (sync.chunks, sync.message) == (4, "")


def test_a_sync_whose_message_comes_twice_is_run_once(source, root):
    sync = Sync.objects.create(connection=source)
    stale = Sync.objects.get(pk=sync.pk)
    finished = sync_connection(source, sync=sync).finished_at
    (root / "5.md").write_text("# Page 5\n\nText.\n")
    assert sync_connection(source, sync=stale).finished_at == finished
    assert Document.objects.count() == 4


def test_open_syncs_that_nobody_runs_are_begun(source):
    queued = Sync.objects.create(connection=source)
    assert startable() == [queued]
    running = Sync.objects.create(connection=source, status=Sync.Status.RUNNING)
    Sync.objects.create(connection=source, status=Sync.Status.DONE)
    # One after the other, and the one that was begun comes first.
    assert startable() == [running]
    Sync.objects.update(heartbeat_at=timezone.now())
    assert startable() == []


@pytest.mark.parametrize(("covered", "deleted"), [("team", 1), ("tea", 3), ("team/notes", 2), (".", 0), ("", 0)])
def test_what_lies_below_a_folder_that_cannot_be_listed_is_not_gone(source, settings, covered, deleted):
    settings.CORECUBE_DELETE_GUARD_PERCENT = 100
    before = Listing(entry("team/a"), entry("team/notes/b"), entry("teams"))
    sync_connection(source, source=Source(before))
    problem = ItemProblem(covered, "unreadable", "It cannot be listed.", covers_subtree=True)
    assert sync_connection(source, source=Source(Listing(problem))).deleted == deleted
    assert Document.objects.count() == 3 - deleted


def test_a_problem_with_one_file_says_nothing_of_others(source):
    sync_connection(source, source=Source(Listing(entry("team/a"), entry("b"))))
    problem = ItemProblem("team", "symlink", "A link to a folder is not followed.")
    assert sync_connection(source, source=Source(Listing(problem, entry("b")))).deleted == 1


def test_of_two_items_with_one_id_the_first_is_taken(source):
    sync = sync_connection(source, source=Source(Listing(entry("a", "The first."), entry("a", "The second."))))
    assert (sync.status, sync.added, sync.failed) == (Sync.Status.DONE, 1, 1)
    assert source.problems.get().reason == "duplicate"
    assert [chunk.text for chunk in Chunk.objects.all()] == ["The first."]
    assert_whole(source)


def test_two_file_names_that_read_the_same_stop_nothing(source, root):
    (root / "x\\xff.md").write_text("# Literal\n\nText.\n")
    (root / os.fsdecode(b"x\xff.md")).write_text("# Byte\n\nText.\n")
    sync = sync_connection(source)
    assert (sync.status, sync.added + sync.failed) == (Sync.Status.DONE, 6)
    assert_whole(source)


def test_a_disabled_connection_is_not_synced(source):
    sync_connection(source)
    source.enabled = False
    source.save()
    with pytest.raises(ConnectionDisabledError):
        sync_connection(source)
    latest = source.syncs.first()
    assert (latest.status, "disabled" in latest.message) == (Sync.Status.FAILED, True)


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_is_deleted_while_its_sync_encodes_leaves_nothing(source, monkeypatch):
    monkeypatch.setattr("retrieval.ingest.work.BATCH_CHUNKS", 1)
    working = active.encoder()

    class Interrupted(HashEncoder):
        calls = 0

        def encode_documents(self, texts):
            self.calls += 1
            if self.calls == 2:
                elsewhere(Connection.objects.get(pk=source.pk).delete)
            return working.encode_documents(texts)

    interrupted = Interrupted()
    monkeypatch.setattr(active, "encoder", lambda *_: interrupted)
    with pytest.raises(UnknownConnectionError):
        sync_connection(source)
    assert (Document.objects.count(), Chunk.objects.count(), Embedding.objects.count()) == (0, 0, 0)
    assert (TermFrequency.objects.count(), Sync.objects.count()) == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_deleting_a_connection_waits_for_what_is_being_stored(source, monkeypatch):
    from retrieval.ingest import encode

    store = encode.store_documents
    deleting = threading.Thread(target=in_own_connection(Connection.objects.get(pk=source.pk).delete))

    def store_slowly(*arguments, **options):
        # Between two documents the deletion and the next one race for the connection; either may come first.
        if deleting.ident is None:
            deleting.start()
            deleting.join(timeout=1)
            assert deleting.is_alive()
        store(*arguments, **options)

    monkeypatch.setattr(encode, "store_documents", store_slowly)
    # The deletion may come before or after the sync's last word.
    with suppress(UnknownConnectionError):
        sync_connection(source)
    deleting.join()
    assert (Document.objects.count(), Chunk.objects.count(), TermFrequency.objects.count()) == (0, 0, 0)


def in_own_connection(call):
    def run():
        try:
            call()
        finally:
            database.close()

    return run


def elsewhere(call):
    """Run a call in another thread, and so in a database connection of its own."""
    thread = threading.Thread(target=in_own_connection(call))
    thread.start()
    thread.join()


def folded(connection):
    """Return whether every lexeme of a connection has one row."""
    lexemes = list(TermFrequency.objects.filter(connection_id=connection.pk).values_list("lexeme", flat=True))
    return len(lexemes) == len(set(lexemes)) > 0


def test_counts_that_a_killed_sync_left_unsummed_are_summed_by_the_next(source):
    sync_connection(source)
    fold_term_counts(source.pk)
    for change in (1, -1):
        TermFrequency.objects.create(connection_id=source.pk, lexeme="", chunks=change)
    assert not folded(source)
    assert sync_connection(source).chunks == 0
    assert folded(source)
    assert_whole(source)


def test_counts_are_summed_by_a_sync_that_the_guard_stops(source, root):
    sync_connection(source)
    for number in range(3):
        (root / f"{number}.md").unlink()
    (root / "3.md").write_text("# Page 3\n\nAnother text about alpha.\n")
    assert sync_connection(source).status == Sync.Status.STOPPED
    assert folded(source)
    assert_whole(source)


def test_very_many_unchanged_documents_are_marked_in_parts(source, monkeypatch):
    monkeypatch.setattr("retrieval.ingest.listing._PAGE", 3)
    first = sync_connection(source)
    sync_connection(source)
    assert min(Document.objects.values_list("synced_at", flat=True)) > first.finished_at


def test_a_date_from_the_end_of_time_does_not_reach_the_store(source, root):
    (root / "late.md").write_text("---\ndate: 9999-12-31T23:59:59-05:00\n---\n# Late\n\nText.\n")
    os.utime(root / "1.md", (1, 2**33))
    sync_connection(source)
    assert len(Document.objects.values_list("modified_at", flat=True)) == 5
    assert Document.objects.get(external_id="1.md").modified_at is None
