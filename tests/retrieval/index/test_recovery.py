from datetime import UTC, datetime

import pytest

from retrieval.engine.state import RequestFilter
from retrieval.index import recovery
from retrieval.models import Document
from retrieval.search import runtime
from tests.retrieval.presets.consolidated.stages.recovering import state_of

EVERYTHING = RequestFilter()


@pytest.fixture
def tables(world, sync_once):
    """Have a table taken in by each connection, and return their documents."""
    for connection in (world.runbooks, world.vault, world.ledger):
        folder = world.root / connection.slug
        (folder / "ports.csv").write_text("port,master\nSaltholm,Ines\n")
        (folder / "cranes.csv").write_text("crane,tons\nOld Maud,40\n")
    sync_once(world.runbooks, world.vault, world.ledger)
    return world


def probe(state, index, *types, vector=None, depth=10, kept=EVERYTHING):
    return recovery.of_source_types(
        types,
        vector=vector,
        index=index,
        terms=state.terms.terms,
        scope=state.scope,
        request_filter=kept,
        depth=depth,
        timeout_seconds=5,
    )


def owners(hits):
    documents = Document.objects.in_bulk([hit.chunk_id.document_id for hit in hits])
    return [
        (documents[hit.chunk_id.document_id].connection_id, documents[hit.chunk_id.document_id].title) for hit in hits
    ]


def test_the_nearest_of_a_type_come_first_and_only_in_scope(tables, index):
    state = state_of(tables.principal("bob"), "crane tons Old Maud")
    found = probe(state, index, "csv", "excel", vector=state.vector)
    assert owners(found) == [(tables.runbooks.pk, "Cranes"), (tables.runbooks.pk, "Ports")]
    assert found[0].score > found[1].score
    assert found[0].signals == {"cosine": found[0].score}
    assert len(probe(state, index, "csv", vector=state.vector, depth=1)) == 1


def test_nothing_of_a_type_is_nothing(tables, index):
    state = state_of(tables.principal("bob"), "crane")
    assert probe(state, index, "pdf", vector=state.vector) == ()
    assert probe(state_of(tables.principal("charlie"), "crane"), index, "csv") == ()


def test_without_a_vector_words_and_then_the_newest_come_first(tables, index):
    state = state_of(tables.principal("bob"), "Saltholm")
    assert [title for _, title in owners(probe(state, index, "csv"))] == ["Ports", "Cranes"]
    plain = state_of(tables.principal("bob"), "nothing of it")
    Document.objects.filter(title="Cranes").update(modified_at=datetime(2030, 1, 1, tzinfo=UTC))
    assert [title for _, title in owners(probe(plain, index, "csv"))] == ["Cranes", "Ports"]


def test_a_chunk_whose_vector_is_not_made_yet_is_found_behind_the_others(tables, index):
    from django.db import connection as database

    with database.cursor() as cursor:
        cursor.execute(
            "DELETE FROM retrieval_embedding WHERE document_id IN (SELECT id FROM retrieval_document WHERE title = %s)",
            ["Cranes"],
        )
    state = state_of(tables.principal("bob"), "crane tons Old Maud")
    assert [title for _, title in owners(probe(state, index, "csv", vector=state.vector))] == ["Ports", "Cranes"]


def test_a_request_narrows_it(tables, index):
    own = tables.runbooks.documents.get(title="Ports")
    state = state_of(tables.principal("bob"), "crane")
    kept = RequestFilter(documents=frozenset({own.pk}))
    assert owners(probe(state, index, "csv", vector=state.vector, kept=kept)) == [(tables.runbooks.pk, "Ports")]


def test_what_a_filter_keeps_is_told_of_chunks_in_scope_alone(tables, index):
    alice, bob = state_of(tables.principal("alice"), "crane"), state_of(tables.principal("bob"), "crane")
    hits = probe(alice, index, "csv", vector=alice.vector)
    assert len(hits) == 6
    kept = recovery.passing(hits, scope=bob.scope, request_filter=EVERYTHING, timeout_seconds=5)
    assert kept == {hit.chunk_id for hit in probe(bob, index, "csv")}
    own = tables.runbooks.documents.get(title="Ports")
    narrow = RequestFilter(documents=frozenset({own.pk}))
    kept = recovery.passing(hits, scope=alice.scope, request_filter=narrow, timeout_seconds=5)
    assert {it.document_id for it in kept} == {own.pk}


def test_the_searched_index_is_not_among_the_others(world):
    state = state_of(world.principal("bob"), "rollback")
    assert recovery.other_rows(runtime.resources().index, scope=state.scope, timeout_seconds=5) == []
