"""Full text by the BM25 index: the scores of PostgreSQL, whatever the index lacks; and nobody sees more."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.db import connection as database

from corecube.access import scope_for
from corecube.models import Connection
from corecube.scope import Sensitivity
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import RequestFilter, SearchState
from retrieval.index import outbox
from retrieval.index.bm25.follower import follower
from retrieval.index.bm25.reader import Reader
from retrieval.index.folder import Folder
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, ReadModel
from retrieval.search import runtime
from retrieval.search.request import SearchRequest
from retrieval.search.service import search as search_all
from retrieval.stages import fulltext
from retrieval.stages.analyze import Analyze
from retrieval.stages.fulltext import Fulltext, FulltextConfig
from tests.followers import wait_for_others

BY_INDEX, ALONE = ["fulltext_index"], ["fulltext_relaxed"]
QUESTION = "rollback the staging queue in March"


@pytest.fixture(autouse=True)
def of_any_size(settings, monkeypatch):
    settings.CORECUBE_BM25 = True
    monkeypatch.setattr(fulltext, "_FEW_CHUNKS", 0)


@pytest.fixture
def index(transactional_db, world, settings):
    """The world's BM25 index; from now on nobody updates it."""
    wait_for_others()
    follower().rebuild()
    settings.CORECUBE_BM25 = False
    return Reader(Folder(settings.CORECUBE_BM25_DIR))


def search(world, index, name, text=QUESTION, kept=None, **config):
    """Return the codes of the leg's notes, and what it found; the same as PostgreSQL alone finds."""
    state = SearchState(
        query=read_query(text, characters=500),
        scope=scope_for(world.principal(name)),
        deadline=Deadline.after(5.0),
        now=datetime(2026, 6, 1, tzinfo=UTC),
        top_k=10,
        filter=kept or RequestFilter(),
    )
    state = Analyze("english")(state)
    settings = FulltextConfig(**config)
    leg, alone = Fulltext(settings, index, "english")(state), Fulltext(settings)(state)
    found = {hit.chunk_id: hit.score for hit in leg.rankings["fulltext"]}
    assert found == pytest.approx({hit.chunk_id: hit.score for hit in alone.rankings["fulltext"]})
    assert list(found) == [hit.chunk_id for hit in alone.rankings["fulltext"]]
    return [note.code for note in leg.notes], {it.document_id for it in found}


def of(*connections):
    return set(Document.objects.filter(connection__in=connections).values_list("pk", flat=True))


@pytest.mark.parametrize("name", ["alice", "bob"])
def test_the_index_finds_what_postgresql_finds(world, index, name):
    codes, found = search(world, index, name)
    assert codes == BY_INDEX
    visible = {"alice": of(world.runbooks, world.vault, world.ledger), "bob": of(world.runbooks)}
    assert found
    assert found <= visible[name]


def test_only_the_best_are_returned(world, index):
    _, everything = search(world, index, "alice")
    codes, best = search(world, index, "alice", depth=1)
    assert codes == BY_INDEX
    assert len(best) == 1 < len(everything)


def test_what_the_index_cannot_tell_is_left_to_postgresql(world, index, monkeypatch):
    assert search(world, index, "bob", "staging -queue")[0] == ["fulltext_operators"]
    assert search(world, index, "bob", kept=RequestFilter(source_types=frozenset({"text"})))[0] == ALONE
    assert search(world, index, "bob", cover_density=1)[0] == ["fulltext_all_terms"]
    with monkeypatch.context() as patch:
        patch.setattr(fulltext, "_FEW_CHUNKS", 1_000)
        assert search(world, index, "bob")[0] == ALONE
    (index.folder.path / "CURRENT").unlink()
    assert search(world, index, "bob")[0] == ALONE


def test_a_language_that_the_index_does_not_stem_is_left_to_postgresql(world, index):
    assert search(world, index, "alice")[0] == BY_INDEX
    Connection.objects.filter(pk=world.ledger.pk).update(language="german")
    assert search(world, index, "alice")[0] == ALONE
    assert search(world, index, "bob")[0] == BY_INDEX


def test_what_changed_since_the_index_was_written_is_found_as_it_is_now(world, index):
    """A document came, one changed, and one went: the index knows nothing of it."""
    (world.root / "runbooks" / "new.md").write_text("# Staging\n\nRollback the staging queue at once.\n")
    (world.root / "runbooks" / "queues.txt").write_text("Nothing but lamps.\n")
    before = of(world.runbooks)
    sync_connection(world.runbooks)
    (new,) = of(world.runbooks) - before
    codes, found = search(world, index, "bob")
    assert codes == BY_INDEX
    assert new in found
    (world.root / "runbooks" / "new.md").unlink()
    sync_connection(world.runbooks)
    assert new not in search(world, index, "bob")[1]


def test_an_index_that_is_too_far_behind_is_left_alone(world, index, monkeypatch):
    for name in ("a.md", "b.md"):
        (world.root / "runbooks" / name).write_text(f"# Lamp\n\nA lamp of {name} burns.\n")
    sync_connection(world.runbooks)
    assert search(world, index, "bob")[0] == BY_INDEX
    with monkeypatch.context() as patch:
        patch.setattr(outbox, "MAX_CHANGED", 1)
        assert search(world, index, "bob")[0] == ALONE
    ReadModel.objects.update_or_create(name="outbox", defaults={"transaction_id": index.view().position + 1})
    assert search(world, index, "bob")[0] == ALONE


def test_an_index_of_another_database_or_another_time_is_left_alone(world, index):
    with database.cursor() as cursor:
        # Rows that no outbox entry tells of, as after a restored backup.
        cursor.execute("UPDATE retrieval_chunk SET search = '' WHERE connection_id = %s", [world.runbooks.pk])
    assert search(world, index, "bob")[0] != BY_INDEX
    view = index.view()
    index._view = (index._view[0], replace(view, database="elsewhere"))
    assert search(world, index, "alice")[0] == ALONE


def test_nobody_sees_through_a_stale_index_what_was_hidden_since(world, index):
    """The index says that documents are in a connection of Bob's; one moved, then the level of the rest rose."""
    moved, _ = sorted(of(world.runbooks))
    with database.cursor() as cursor:
        for table, key in (("document", "id"), ("chunk", "document_id")):
            cursor.execute(f"UPDATE retrieval_{table} SET connection_id = %s WHERE {key} = %s", [world.vault.pk, moved])
    assert moved not in search(world, index, "bob")[1]
    Connection.objects.filter(pk=world.runbooks.pk).update(sensitivity=Sensitivity.RESTRICTED)
    assert search(world, index, "bob")[1] == set()


@pytest.mark.parametrize("preset", ["corecube", "contextpack"])
def test_the_presets_use_it(world, index, preset):
    resources = replace(runtime.resources(), bm25=index)
    found = search_all(
        SearchRequest(text=QUESTION, preset=preset), principal=world.principal("bob"), resources=resources
    )
    assert BY_INDEX[0] in {note.code for span in found.trace for note in span.notes}
