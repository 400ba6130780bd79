"""Exact signals and places of one document, against the legs and against numpy."""

import numpy as np
import pytest
from django.db import connection as database

from retrieval.engine.types import ChunkId, Term
from retrieval.index import probe, store
from retrieval.index.lexemes import any_of
from retrieval.index.probe import Probed
from retrieval.index.store import TextSearch
from retrieval.models import Document, Embedding

SEARCH = TextSearch((0.1, 0.5, 0.7, 1.0), 0.2)
TERMS = (Term("rollback", 3, 0.5), Term("stage", 1, 2.0), Term("nowher", 0, 3.0))


@pytest.fixture
def probed(index, unit):
    def of(scope, *, seed=21, terms=TERMS):
        return Probed(scope, index, unit(seed)[0], terms, SEARCH)

    return of


@pytest.fixture
def rolling(world):
    return Document.objects.get(title="Rolling back").pk


def look(asked, document_id, *, match="", ordinals=()):
    return probe.document(asked, document_id, match=match, ordinals=ordinals, timeout_seconds=5)


def test_the_full_text_score_is_bit_for_bit_that_of_the_leg(bob, probed, rolling):
    match = any_of(TERMS[:2])
    leg = store.fulltext(match, terms=TERMS, scope=bob, search=SEARCH, depth=100, limit=1000, timeout_seconds=5)
    scores = {hit.chunk_id: hit.score for hit in leg.ranking if hit.chunk_id.document_id == rolling}
    found = look(probed(bob), rolling, match=match, ordinals=[chunk_id.ordinal for chunk_id in scores])
    assert scores
    assert {chunk_id: found.chunks[chunk_id].fulltext for chunk_id in scores} == scores
    assert all(found.chunks[chunk_id].is_match for chunk_id in scores)
    assert found.wordiest == max(scores, key=lambda chunk_id: (scores[chunk_id], -chunk_id.ordinal))


def test_the_cosine_is_that_of_the_exact_leg(bob, probed, index, rolling):
    asked = probed(bob)
    leg = store.dense_exact(asked.vector, scope=bob, index=index, depth=100, timeout_seconds=5)
    cosines = {hit.chunk_id: hit.score for hit in leg if hit.chunk_id.document_id == rolling}
    found = look(asked, rolling, ordinals=[chunk_id.ordinal for chunk_id in cosines])
    assert {chunk_id: found.chunks[chunk_id].cosine for chunk_id in cosines} == cosines
    assert found.nearest == max(cosines, key=cosines.__getitem__)
    assert (found.count, found.vectors) == (len(cosines), len(cosines))


def test_a_document_out_of_scope_has_nothing(world, bob, probed):
    hidden = Document.objects.get(connection=world.vault).pk
    found = look(probed(bob), hidden, match="'rollback'", ordinals=[0])
    assert (found.count, found.vectors, found.chunks, found.nearest, found.wordiest) == (0, 0, {}, None, None)
    assert probe.place_dense(probed(bob), ChunkId(hidden, 0), timeout_seconds=5) is None
    assert probe.place_fulltext(probed(bob), ChunkId(hidden, 0), match="'rollback'", timeout_seconds=5) is None


def test_the_place_by_cosine_is_what_numpy_counts_and_what_the_exact_leg_has(bob, alice, probed, index, many):
    for scope, seed in ((bob, 31), (alice, 32)):
        asked = probed(scope, seed=seed)
        rows = Embedding.objects.filter(index_id=index.id, connection_id__in=scope.connection_ids)
        vectors = {ChunkId(row.document_id, row.ordinal): row.vector.to_numpy().astype(np.float64) for row in rows}
        query = asked.vector.astype(np.float16).astype(np.float64)
        cosines = {
            it: vector @ query / np.linalg.norm(vector) / np.linalg.norm(query) for it, vector in vectors.items()
        }
        ordered = sorted(cosines, key=lambda chunk_id: (-cosines[chunk_id], chunk_id))
        leg = store.dense_exact(asked.vector, scope=scope, index=index, depth=5000, timeout_seconds=5)
        for rank in (1, 7, 333, len(ordered)):
            counted = probe.place_dense(asked, ordered[rank - 1], timeout_seconds=5)
            assert (counted.rank, counted.among) == (pytest.approx(rank, abs=1), len(ordered))  # in single precision
            assert probe.place_dense(asked, leg[rank - 1].chunk_id, timeout_seconds=5) == (rank, len(leg))


def test_equal_cosines_are_placed_by_chunk_id(bob, probed, index, rolling):
    Embedding.objects.filter(index_id=index.id).update(vector=Embedding.objects.first().vector)
    asked = probed(bob)
    leg = store.dense_exact(asked.vector, scope=bob, index=index, depth=100, timeout_seconds=5)
    ids = [hit.chunk_id for hit in leg]
    assert ids == sorted(ids)
    assert [probe.place_dense(asked, it, timeout_seconds=5).rank for it in ids] == list(range(1, len(ids) + 1))


def test_the_place_by_full_text_is_that_of_the_leg(bob, probed, common):
    term = Term("common", 64, 1.0)
    asked = probed(bob, terms=[term])
    leg = store.fulltext(
        "'common'", terms=[term], scope=bob, search=SEARCH, depth=100, limit=1000, timeout_seconds=5
    ).ranking
    assert len(leg) == 64
    for rank, hit in enumerate(leg, start=1):
        assert probe.place_fulltext(asked, hit.chunk_id, match="'common'", timeout_seconds=5) == (rank, 64)


def test_a_chunk_that_does_not_match_has_no_place(bob, probed, rolling):
    place = probe.place_fulltext(probed(bob), ChunkId(rolling, 0), match="'nowher'", timeout_seconds=5)
    assert place is None


def test_without_a_vector_there_is_a_full_text_score_still(bob, index, rolling):
    asked = Probed(bob, index, None, TERMS, SEARCH)
    found = look(asked, rolling, match="'rollback'")
    assert found.nearest is None
    assert found.chunks[found.wordiest].fulltext > 0
    assert probe.place_dense(asked, ChunkId(rolling, 0), timeout_seconds=5) is None


def test_a_chunk_without_a_vector_in_the_index_is_counted(bob, probed, index, rolling):
    with database.cursor() as cursor:
        cursor.execute("DELETE FROM retrieval_embedding WHERE document_id = %s", [rolling])
    found = look(probed(bob), rolling)
    assert found.count > 0
    assert (found.vectors, found.nearest) == (0, None)
