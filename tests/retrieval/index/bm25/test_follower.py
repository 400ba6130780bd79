"""Following the database: nothing lost, nothing twice, nothing from before, whenever it is cut off."""

import time
from datetime import timedelta
from threading import Thread

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, transaction
from django.utils import timezone
from tantivy import Occur, Query

from corecube.models import Connection
from retrieval.index import following, outbox
from retrieval.index.bm25 import schema
from retrieval.index.bm25.follower import follower
from retrieval.index.bm25.reader import Reader
from retrieval.index.bm25.writer import Writer
from retrieval.index.following import LATE_SECONDS
from retrieval.index.writer import delete_documents
from retrieval.ingest.services import delete_connection
from retrieval.ingest.sync import sync_connection
from retrieval.models import Chunk, Document, OutboxEntry, ReadModel, SearchRecord
from tests.followers import kill_in_the_middle, wait_for_others, write
from tests.retrieval.index.bm25.conftest import Shelf


@pytest.fixture(autouse=True)
def kept(settings):
    settings.CORECUBE_BM25 = True


@pytest.fixture
def shelf(transactional_db, world, settings):
    """Return the world's index, built when its documents came in."""
    caught_up()
    return Shelf(settings.CORECUBE_BM25_DIR)


def caught_up():
    """Follow as soon as nothing holds a change back."""
    wait_for_others()
    return follower().follow()


def held(shelf):
    """Return the chunks that the index holds, in order: one that is there twice shows."""
    mark = Query.term_query(schema.schema(), schema.MARK, schema.POSITION)
    every = Query.boolean_query([(Occur.Must, Query.all_query()), (Occur.MustNot, mark)])
    return sorted(chunk_id for chunk_id, _ in shelf.reader.view().best(every, 10_000))


def stored():
    return sorted(Chunk.objects.values_list("document_id", "ordinal"))


def test_a_syncs_end_brings_the_index_up_to_date(world, shelf):
    assert held(shelf) == stored()
    (world.root / "runbooks" / "queues.txt").unlink()
    until = time.monotonic() + 120
    write(world, "new.md", "# Lamps\n\nA lamp burns oil.\n")
    sync_connection(world.runbooks)
    # Now and then another test's transaction on the same server holds a change back until the next sync.
    while held(shelf) != stored():
        assert time.monotonic() < until
        sync_connection(world.runbooks)
    assert outbox.lag(shelf.reader.view().position).transactions == 0


def test_deleting_a_connection_takes_its_chunks_out(world, shelf):
    delete_connection(world.ledger, actor=None)
    assert held(shelf) != stored()
    caught_up()
    assert held(shelf) == stored()
    assert not Connection.objects.filter(slug="ledger").exists()


def test_taking_over_twice_is_the_same_as_once(world, shelf):
    before = held(shelf)
    follower().rebuild()
    with shelf.folder.locked(), Writer(shelf.folder.current, "english") as writer:
        writer.commit(0)
    assert caught_up().changes >= OutboxEntry.objects.count() > 0
    assert held(shelf) == before == stored()


def test_a_transaction_that_is_at_work_is_waited_for(world, shelf):
    """A later one ends first: its change is not taken over before that of the earlier one can be."""
    first, second = Document.objects.filter(connection=world.runbooks).values_list("pk", flat=True)
    position = shelf.reader.view().position

    def delete_second():
        delete_documents([second])
        assert follower().follow().changes == 0
        connection.close()

    with transaction.atomic():
        delete_documents([first])
        thread = Thread(target=delete_second)
        thread.start()
        thread.join()
        assert shelf.reader.view().position == position
        assert outbox.lag(position).transactions == 2
    assert caught_up().changes == 2
    assert held(shelf) == stored()


def test_many_changes_are_taken_over_in_steps(world, shelf, monkeypatch):
    monkeypatch.setattr(following, "_CHANGES_AT_ONCE", 1)
    for document in Document.objects.filter(connection=world.runbooks):
        delete_documents([document.pk])
    assert caught_up().changes == 2
    assert held(shelf) == stored()


@pytest.mark.parametrize("harm", ["gone", "broken", "another database", "a future", "another language", "forgotten"])
def test_an_index_that_cannot_follow_is_built_anew(world, shelf, harm, settings):
    build = shelf.folder.current
    if harm == "gone":
        (shelf.folder.path / "CURRENT").unlink()
    elif harm == "broken":
        (build / "meta.json").write_text("{}")
    elif harm == "another database":
        about = (build / "about.json").read_text()
        (build / "about.json").write_text(about.replace(outbox.history(), "elsewhere"))
    elif harm == "a future":
        with shelf.folder.locked(), Writer(build, "english") as writer:
            writer.commit(2**60)
    elif harm == "another language":
        settings.CORECUBE_TEXT_SEARCH_CONFIG = "german"
    else:
        ReadModel.objects.create(name="outbox", transaction_id=outbox.horizon())
    followed = follower().follow()
    assert followed.is_rebuilt
    assert Reader(shelf.folder).view().chunks == Chunk.objects.count()
    if harm != "forgotten":
        assert not follower().follow().is_rebuilt


def test_while_one_process_writes_no_other_does(world, shelf):
    with shelf.folder.locked():
        assert follower().follow() is None
        assert follower().rebuild() is None
        with pytest.raises(CommandError, match="Another process"):
            call_command("bm25", "follow")


@pytest.mark.parametrize("action", ["follow", "rebuild"])
def test_killed_in_the_middle_it_goes_on_where_it_was(world, shelf, settings, action):
    kill_in_the_middle(
        world, shelf, settings, module="retrieval.index.bm25.follower", setting="CORECUBE_BM25", action=action
    )
    if action == "follow":
        assert held(shelf) != stored()
    caught_up()
    assert held(shelf) == stored()
    assert [it.name for it in shelf.folder.path.iterdir() if it.name.isdigit()] == [shelf.folder.current.name]


def test_old_changes_are_forgotten_once_every_follower_has_them(world, shelf):
    SearchRecord.objects.all().delete()
    total = OutboxEntry.objects.count()
    other = ReadModel.objects.create(name="bm25-elsewhere", transaction_id=0, at=timezone.now())
    assert outbox.prune() == 0
    other.transaction_id = OutboxEntry.objects.order_by("transaction_id").first().transaction_id
    other.save()
    assert outbox.prune() == total - OutboxEntry.objects.count() > 0
    other.at = timezone.now() - timedelta(days=8)
    other.save()
    outbox.prune()
    assert (OutboxEntry.objects.count(), ReadModel.objects.filter(name="bm25-elsewhere").count()) == (0, 0)
    # Its own index has them all, and goes on.
    assert not follower().follow().is_rebuilt


def test_what_a_kept_search_can_be_compared_with_stays(world, shelf):
    SearchRecord.objects.all().delete()
    record = SearchRecord.objects.create(preset="corecube", preset_version="1", milliseconds=1, hit_count=0)
    delete_documents([Document.objects.first().pk])
    caught_up()
    outbox.prune()
    assert OutboxEntry.objects.get().deleted
    record.delete()
    outbox.prune()
    assert not OutboxEntry.objects.exists()


def test_where_searches_are_kept_for_ever_an_old_one_keeps_no_changes(world, shelf, settings):
    settings.CORECUBE_KEEP_SEARCHES_DAYS = 0
    SearchRecord.objects.all().delete()
    SearchRecord.objects.create(preset="corecube", preset_version="1", milliseconds=1, hit_count=0)
    delete_documents([Document.objects.first().pk])
    caught_up()
    SearchRecord.objects.update(at=timezone.now() - timedelta(days=89))
    outbox.prune()
    assert OutboxEntry.objects.exists()
    SearchRecord.objects.update(at=timezone.now() - timedelta(days=91))
    outbox.prune()
    assert not OutboxEntry.objects.exists()
    assert SearchRecord.objects.get().transaction_id < outbox.pruned_up_to()


def test_the_status_tells_how_far_behind_it_is(world, shelf, settings, capsys):
    assert (follower().status().problem, follower().status().chunks) == ("", Chunk.objects.count())
    delete_documents([Document.objects.first().pk])
    OutboxEntry.objects.filter(deleted=True).update(at=timezone.now() - timedelta(seconds=LATE_SECONDS + 60))
    found = follower().status()
    assert found.lag.transactions == 1
    assert found.lag.seconds == pytest.approx(LATE_SECONDS + 60, abs=20)
    assert "behind" in found.problem
    call_command("bm25", "status")
    assert "1 transactions" in capsys.readouterr().out
    caught_up()
    call_command("bm25", "follow")
    assert follower().status().problem == ""
    call_command("bm25", "rebuild")
    settings.CORECUBE_BM25 = False
    assert follower().status().problem == ""
    with pytest.raises(CommandError, match="CORECUBE_BM25"):
        call_command("bm25", "status")


def test_without_an_index_the_status_says_so(transactional_db):
    assert "no readable BM25 index yet" in follower().status().problem
