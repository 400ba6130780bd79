"""Following the database with the vector files: nothing lost, nothing twice, nothing from before, whenever cut off."""

import os
import time
from threading import Thread

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from retrieval.index import outbox
from retrieval.index.vectors.files import State
from retrieval.index.vectors.follower import follower
from retrieval.index.writer import MissingVector, copy_vectors, delete_documents, fill_index
from retrieval.ingest.services import delete_connection
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, Embedding, EmbeddingIndex, OutboxEntry, ReadModel
from retrieval.search import runtime
from retrieval.tasks import worker
from tests.followers import kill_in_the_middle, wait_for_others, write
from tests.retrieval.index.vectors.conftest import Shelf


@pytest.fixture(autouse=True)
def kept(settings):
    settings.CORECUBE_VECTORS = True


@pytest.fixture
def shelf(transactional_db, world, settings):
    """Return the world's files, built when its documents came in."""
    caught_up()
    return Shelf(settings.CORECUBE_VECTORS_DIR)


def caught_up():
    """Follow as soon as nothing holds a change back."""
    wait_for_others()
    return follower().follow()


def held(shelf):
    """Return the chunks in the files by connection, in order: one that is there twice shows."""
    dim = EmbeddingIndex.objects.get(status="active").dim
    return {key: [(number, ordinal) for number, ordinal in found] for key, found in shelf.held(dim).items() if found}


def stored():
    found = {}
    rows = Embedding.objects.filter(index_id=EmbeddingIndex.objects.get(status="active").pk)
    for key, document, ordinal in rows.values_list("connection_id", "document_id", "ordinal"):
        found.setdefault(key, []).append((document.int, ordinal))
    return {key: sorted(it) for key, it in found.items()}


def test_a_worker_keeps_them_up_to_date(world, shelf):
    """Its thread follows what syncs of other processes changed."""
    assert held(shelf) == stored()
    (world.root / "runbooks" / "queues.txt").unlink()
    write(world, "new.md", "# Lamps\n\nA lamp burns oil.\n")
    with pytest.MonkeyPatch.context() as patch:
        # The sync's own process has no files.
        patch.setattr("retrieval.ingest.completion.keep_up", lambda: True)
        sync_connection(world.runbooks)
    assert held(shelf) != stored()
    worker._stopping.clear()
    thread = Thread(target=worker._follow_until_stopped)
    thread.start()
    try:
        until = time.monotonic() + 120
        while held(shelf) != stored():
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        worker.stop_threads()
        thread.join()


def test_deleting_a_connection_takes_its_chunks_out(world, shelf):
    delete_connection(world.ledger, actor=None)
    assert held(shelf) != stored()
    caught_up()
    assert held(shelf) == stored()
    assert world.ledger.pk not in State.read(shelf.folder.current).files


def test_a_document_that_moved_is_in_its_new_connection_alone(world, shelf):
    document = Document.objects.filter(connection=world.ledger).first()
    for table in ("document", "chunk", "embedding"):
        key = "id" if table == "document" else "document_id"
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE retrieval_{table} SET connection_id = %s WHERE {key} = %s", [world.runbooks.pk, document.pk]
            )
    OutboxEntry.objects.create(
        document_id=document.pk, connection_id=world.runbooks.pk, deleted=False, transaction_id=outbox.newest()
    )
    caught_up()
    assert held(shelf) == stored()


def test_taking_over_twice_is_the_same_as_once(world, shelf):
    before = held(shelf)
    shelf.writer(shelf.reader.view().about["dim"]).commit(0)
    assert caught_up().changes >= OutboxEntry.objects.count() > 0
    assert held(shelf) == before == stored()


@pytest.mark.parametrize(
    "harm", ["gone", "broken", "cut", "another database", "a future", "another index", "forgotten"]
)
def test_files_that_cannot_follow_are_built_anew(world, shelf, harm):
    build = shelf.folder.current
    if harm == "gone":
        (shelf.folder.path / "CURRENT").unlink()
    elif harm == "broken":
        (build / "STATE").write_text("{}")
    elif harm == "cut":
        for file in build.glob("*.vectors"):
            os.truncate(file, 7)
    elif harm == "another database":
        about = (build / "about.json").read_text()
        (build / "about.json").write_text(about.replace(outbox.history(), "elsewhere"))
    elif harm == "a future":
        shelf.writer(shelf.reader.view().about["dim"]).commit(2**60)
    elif harm == "another index":
        row = EmbeddingIndex.objects.get()
        EmbeddingIndex.objects.update(status="previous")
        row.pk, row.status = None, "active"
        row.save()
        Embedding.objects.update(index_id=row.pk)
    else:
        ReadModel.objects.create(name="outbox", transaction_id=outbox.horizon())
    assert follower().follow().is_rebuilt
    assert held(shelf) == stored()
    if harm != "forgotten":
        assert not follower().follow().is_rebuilt


def test_other_vectors_of_the_active_index_are_taken_over_and_those_of_another_are_not(world, shelf):
    row = EmbeddingIndex.objects.get()
    index, vector = runtime.resources().index, np.zeros(row.dim, np.float32)
    vector[0] = 1
    document = Document.objects.filter(connection=world.runbooks).first()
    made = MissingVector(document.pk, 0, document.fingerprint, vector)
    fill_index(index, [made], replaces=True)
    caught_up()
    records = [it.records for it in shelf.reader.view().files.values()]
    found = [it for group in records for it in group if (int(it["high"]) << 64) + int(it["low"]) == document.pk.int]
    assert found[-1]["vector"].tolist() == [127, *[0] * (row.dim - 1)]
    row.pk, row.status = None, "building"
    row.save()
    count = OutboxEntry.objects.count()
    assert copy_vectors(source=index.id, target=row.pk, documents=[document.pk]) > 0
    assert OutboxEntry.objects.count() == count


def test_without_an_embedding_index_there_is_nothing_to_follow(transactional_db, settings, capsys):
    assert follower().follow().changes == 0
    assert follower().status().problem == ""
    assert not ReadModel.objects.exists()
    settings.CORECUBE_VECTORS = False
    with pytest.raises(CommandError, match="CORECUBE_VECTORS"):
        call_command("vectors", "status")


def test_the_commands_tell_build_and_follow(world, shelf, capsys):
    call_command("vectors", "rebuild")
    delete_documents([Document.objects.first().pk])
    call_command("vectors", "status")
    assert "1 transactions" in capsys.readouterr().out
    caught_up()
    call_command("vectors", "follow")
    assert (follower().status().problem, follower().status().chunks) == ("", Embedding.objects.count())
    with shelf.folder.locked(), pytest.raises(CommandError, match="Another process"):
        call_command("vectors", "follow")


@pytest.mark.parametrize("action", ["follow", "rebuild"])
def test_killed_in_the_middle_it_goes_on_where_it_was(world, shelf, settings, action):
    kill_in_the_middle(
        world, shelf, settings, module="retrieval.index.vectors.follower", setting="CORECUBE_VECTORS", action=action
    )
    if action == "follow":
        assert held(shelf) != stored()
    caught_up()
    assert held(shelf) == stored()
    assert [it.name for it in shelf.folder.path.iterdir() if it.name.isdigit()] == [shelf.folder.current.name]
