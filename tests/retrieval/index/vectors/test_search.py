"""Searching by the vector files: as PostgreSQL would, whatever the files lack; and nobody sees more."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from django.db import connection as database

from corecube.access import scope_for
from corecube.models import Connection
from corecube.scope import Sensitivity
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import RequestFilter, SearchState
from retrieval.engine.types import ChunkId
from retrieval.index import active, outbox, store
from retrieval.index.vectors.follower import follower
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, EmbeddingIndex, ReadModel
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search as search_all
from retrieval.stages import dense
from retrieval.stages.analyze import Analyze
from retrieval.stages.dense import Dense, DenseConfig
from retrieval.stages.embed import Embed
from tests.retrieval.index.vectors.conftest import Shelf


@pytest.fixture(autouse=True)
def kept(settings, monkeypatch):
    settings.CORECUBE_VECTORS = True
    monkeypatch.setattr(dense, "_FEW_CHUNKS", 0)


@pytest.fixture
def files(transactional_db, world, settings):
    """The world's vector files; from now on nobody updates them."""
    follower().rebuild()
    settings.CORECUBE_VECTORS = False
    return Shelf(settings.CORECUBE_VECTORS_DIR)


def search(world, files, name, kept=None, **config):
    """Return the code of the leg's note, and what it found; the same as PostgreSQL finds by comparing everything."""
    tools = runtime.resources(active.encoder())
    state = SearchState(
        query=read_query("rollback the staging queue", characters=500),
        scope=scope_for(world.principal(name)),
        deadline=Deadline.after(5.0),
        now=datetime(2026, 6, 1, tzinfo=UTC),
        top_k=10,
        filter=kept or RequestFilter(),
    )
    state = Embed(tools.encoder)(Analyze("english")(state))
    leg = Dense(DenseConfig(**config), tools.index, files=files.reader)(state)
    exact = store.dense_exact(
        state.vector,
        scope=state.scope,
        index=tools.index,
        depth=DenseConfig(**config).depth,
        timeout_seconds=5,
        request_filter=state.filter,
    )
    assert leg.rankings["dense"] == exact
    (note,) = leg.notes
    return note.code, leg.rankings["dense"]


def with_files(files):
    return replace(runtime.resources(active.encoder()), vectors=files.reader)


def documents(ranking):
    return {hit.chunk_id.document_id for hit in ranking}


def of(connection):
    return set(Document.objects.filter(connection=connection).values_list("pk", flat=True))


@pytest.mark.parametrize("name", ["alice", "bob", "charlie"])
@pytest.mark.parametrize("depth", [1, 100])
def test_the_files_find_what_comparing_everything_finds(world, files, name, depth):
    code, found = search(world, files, name, depth=depth)
    assert code == "dense_files"
    visible = {"alice": {*of(world.runbooks), *of(world.vault), *of(world.ledger)}, "bob": of(world.runbooks)}
    assert documents(found) <= visible.get(name, set())
    assert bool(found) == (name != "charlie")


def test_a_larger_scope_a_filter_or_no_files_are_left_to_postgresql(world, files):
    assert search(world, files, "bob", files_below=2)[0] == "dense_exact"
    assert search(world, files, "bob", files_below=3)[0] == "dense_files"
    assert search(world, files, "bob", RequestFilter(source_types=frozenset({"text"})))[0] == "dense_exact"
    assert search(world, files, "bob", files_below=0, exact_below=0)[0] == "dense_hnsw"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "_FEW_CHUNKS", 3)
        assert search(world, files, "bob")[0] == "dense_exact"
    (files.folder.path / "CURRENT").unlink()
    assert search(world, files, "bob")[0] == "dense_exact"


def test_what_changed_since_the_files_were_written_is_found_as_it_is_now(world, files):
    """A document came, one changed, one went: the files know nothing of it."""
    (world.root / "runbooks" / "new.md").write_text("# Staging\n\nRollback the staging queue at once.\n")
    (world.root / "runbooks" / "queues.txt").write_text("Nothing but lamps.\n")
    before = of(world.runbooks)
    sync_connection(world.runbooks)
    code, found = search(world, files, "bob")
    (new,) = of(world.runbooks) - before
    assert (code, found[0].chunk_id.document_id) == ("dense_files", new)
    (world.root / "runbooks" / "new.md").unlink()
    sync_connection(world.runbooks)
    assert new not in documents(search(world, files, "bob")[1])


def test_files_that_are_too_far_behind_are_left_alone(world, files, monkeypatch):
    for name in ("a.md", "b.md"):
        (world.root / "runbooks" / name).write_text(f"# Lamp\n\nA lamp of {name} burns.\n")
    sync_connection(world.runbooks)
    assert search(world, files, "bob")[0] == "dense_files"
    with monkeypatch.context() as patch:
        patch.setattr(outbox, "MAX_CHANGED", 1)
        assert search(world, files, "bob")[0] == "dense_exact"
    ReadModel.objects.update_or_create(name="outbox", defaults={"transaction_id": files.reader.view().position + 1})
    assert search(world, files, "bob")[0] == "dense_exact"


def test_what_changed_elsewhere_makes_no_scope_late(world, files, monkeypatch):
    (world.root / "ledger" / "a.md").write_text("# Lamp\n\nA lamp burns.\n")
    (world.root / "ledger" / "b.md").write_text("# Wind\n\nThe wind blows.\n")
    sync_connection(world.ledger)
    monkeypatch.setattr(outbox, "MAX_CHANGED", 1)
    assert search(world, files, "bob")[0] == "dense_files"
    assert search(world, files, "alice")[0] == "dense_exact"


def test_where_too_many_of_the_candidates_went_everything_is_compared(world, files):
    """Rows that no outbox entry tells of, as after a restored backup."""
    with database.cursor() as cursor:
        cursor.execute("DELETE FROM retrieval_embedding WHERE document_id = %s", [next(iter(of(world.runbooks)))])
    assert search(world, files, "bob")[0] == "dense_exact"


@pytest.mark.parametrize("harm", ["another index", "another database"])
def test_files_of_another_index_or_database_are_left_alone(world, files, harm):
    if harm == "another index":
        row = EmbeddingIndex.objects.get()
        EmbeddingIndex.objects.update(status="previous")
        row.pk, row.status = None, "active"
        row.save()
        with database.cursor() as cursor:
            cursor.execute("UPDATE retrieval_embedding SET index_id = %s", [row.pk])
    else:
        about = {**files.reader.view().about, "database": "elsewhere"}
        build = files.build(about)
        assert build.reader.view().about["database"] == "elsewhere"
    assert search(world, files, "alice")[0] == "dense_exact"


def test_nobody_sees_through_stale_files_what_was_hidden_since(world, files):
    """The files say that a document is in a connection of Bob's; it moved, its level rose, it went."""
    hidden, raised = sorted(of(world.runbooks))
    with database.cursor() as cursor:
        for table, key in (("document", "id"), ("chunk", "document_id"), ("embedding", "document_id")):
            cursor.execute(
                f"UPDATE retrieval_{table} SET connection_id = %s WHERE {key} = %s", [world.vault.pk, hidden]
            )
    assert documents(search(world, files, "bob")[1]) == {raised}
    Connection.objects.filter(pk=world.runbooks.pk).update(sensitivity=Sensitivity.RESTRICTED)
    assert search(world, files, "bob")[1] == ()
    Connection.objects.filter(pk=world.runbooks.pk).update(sensitivity=Sensitivity.INTERNAL)
    Document.objects.filter(pk=raised).delete()
    with database.cursor() as cursor:
        cursor.execute("DELETE FROM retrieval_embedding WHERE document_id = %s", [raised])
    assert search(world, files, "bob")[1] == ()


def test_files_that_claim_what_is_hidden_for_a_scope_show_nobody_anything(world, files):
    """Whoever wrote them, even with a hidden document's id under a visible connection: PostgreSQL decides."""
    output = files.writer(files.reader.view().about["dim"])
    secret = next(iter(of(world.vault)))
    vector = active.encoder().encode_query("rollback the staging queue")
    output.add(world.runbooks.pk, [ChunkId(secret, 0), ChunkId(uuid.uuid4(), 0)], np.stack([vector, vector]))
    output.commit(files.reader.view().position)
    for preset in ("corecube", "helix"):
        request = SearchRequest(text="rollback the staging queue", preset=preset)
        outcome = search_all(request, principal=world.principal("bob"), resources=with_files(files))
        shown = {hit.chunk_id.document_id for ranking in outcome.state.rankings.values() for hit in ranking}
        assert shown <= of(world.runbooks)


@pytest.mark.parametrize("preset", ["corecube", "helix", "contextpack"])
def test_a_search_tells_that_the_files_were_compared(world, files, preset):
    request = SearchRequest(text="rollback the staging queue", preset=preset)
    outcome = search_all(request, principal=world.principal("bob"), resources=with_files(files))
    notes = {note.code: note.text for span in outcome.state.trace for note in span.notes}
    assert notes["dense_files"] == "Compared all 2 chunks in scope in the vector files."
    reference = SearchRequest(text="rollback the staging queue", preset="corecube@reference")
    outcome = search_all(reference, principal=world.principal("bob"), resources=with_files(files))
    assert "dense_hnsw" in {note.code for span in outcome.state.trace for note in span.notes}
