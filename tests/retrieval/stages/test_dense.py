"""The vector leg: which way it takes, and what it does when the index gives too little."""

from datetime import UTC, datetime

import pytest
from django.db import connection as database

from corecube.access import scope_for
from retrieval.engine.deadline import Deadline
from retrieval.engine.query import read_query
from retrieval.engine.state import RequestFilter, SearchState
from retrieval.index import active
from retrieval.models import Document
from retrieval.search import runtime
from retrieval.stages.analyze import Analyze
from retrieval.stages.dense import Dense, DenseConfig
from retrieval.stages.embed import Embed


@pytest.fixture
def search(world):
    tools = runtime.resources(active.encoder())

    def run(name, kept=None, **config):
        state = SearchState(
            query=read_query("rollback", characters=500),
            scope=scope_for(world.principal(name)),
            deadline=Deadline.after(5.0),
            now=datetime(2026, 6, 1, tzinfo=UTC),
            top_k=10,
            filter=kept or RequestFilter(),
        )
        state = Embed(tools.encoder)(Analyze("english")(state))
        return Dense(DenseConfig(**config), tools.index)(state)

    return run


@pytest.mark.parametrize(("exact_below", "code"), [(0, "dense_hnsw"), (2, "dense_hnsw"), (3, "dense_exact")])
def test_a_small_scope_is_compared_exactly(search, exact_below, code):
    # Bob sees two chunks.
    state = search("bob", exact_below=exact_below)
    assert [note.code for note in state.notes] == [code]
    assert len(state.rankings["dense"]) == 2


def test_when_the_index_gives_too_little_everything_is_compared(search, world):
    (first, second) = search("bob", exact_below=0).rankings["dense"]
    with database.cursor() as cursor:
        cursor.execute("DELETE FROM retrieval_embedding WHERE document_id = %s", [first.chunk_id.document_id])
    state = search("bob", exact_below=0)
    assert [note.code for note in state.notes] == ["dense_exact"]
    assert "returned only 1 hits" in state.notes[0].text
    assert state.rankings["dense"] == (second,)


def test_only_the_wanted_depth_is_returned(search):
    assert len(search("alice", exact_below=0, depth=2).rankings["dense"]) == 2
    assert len(search("alice", exact_below=100, depth=2).rankings["dense"]) == 2


def test_of_named_documents_all_chunks_are_compared_in_a_scope_of_any_size(search):
    named = frozenset(Document.objects.filter(external_id__in=["queues.txt", "breach.md"]).values_list("pk", flat=True))
    state = search("alice", RequestFilter(documents=named), exact_below=0)
    assert [note.text for note in state.notes] == ["Compared all chunks of the requested documents."]
    assert {hit.chunk_id.document_id for hit in state.rankings["dense"]} == named
    hidden = search("bob", RequestFilter(documents=named), exact_below=0)
    assert len(hidden.rankings["dense"]) == 1
