import json

import numpy as np
import pytest
from django.db import connection as database
from pgvector import HalfVector

from corecube.access import scope_for
from corecube.errors import DatabaseUnavailableError
from retrieval import runtime
from retrieval.errors import SearchTimeoutError
from retrieval.index import statements, store
from retrieval.index.store import TextSearch, VectorIndex
from retrieval.models import Chunk
from retrieval.ranking import idf
from retrieval.types import Term


def searched_index():
    return runtime.active_index(runtime.encoder())


SEARCH = TextSearch("english", (0.1, 0.5, 0.7, 1.0))


@pytest.fixture
def alice(world):
    return scope_for(world.principal("alice"))


@pytest.fixture
def bob(world):
    return scope_for(world.principal("bob"))


def unit(rng, count, dim):
    vectors = rng.standard_normal((count, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def many(world):
    """Add 2,000 random vectors, half in the runbooks and half in the ledger, and return them."""
    index = searched_index()
    vectors = unit(np.random.default_rng(7), 2000, index.dim)
    rows = [
        (number, index.id, world.runbooks.pk if number % 2 else world.ledger.pk, HalfVector(vector).to_text())
        for number, vector in enumerate(vectors)
    ]
    with database.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO retrieval_embedding (document_id, ordinal, index_id, connection_id, vector)"
            " VALUES (gen_random_uuid(), %s, %s, %s, %s::halfvec)",
            rows,
        )
    return vectors


def test_document_frequencies_are_those_of_the_scope(world, alice, bob):
    def frequencies(scope):
        found = store.analyze("rollback in March", scope=scope, config="english")
        return found.corpus_size, {term.lexeme: term.document_frequency for term in found.terms}

    # Runbooks hold one chunk with "rollback"; the vault and the ledger one each, with "March".
    size = Chunk.objects.count()
    assert frequencies(alice) == (size, {"rollback": 3, "march": 2})
    assert frequencies(bob) == (
        Chunk.objects.filter(connection_id=world.runbooks.pk).count(),
        {"rollback": 1, "march": 0},
    )


def test_terms_come_rarest_first_with_their_idf(world, alice):
    found = store.analyze("rollback March zanzibar", scope=alice, config="english")
    assert [term.lexeme for term in found.terms] == ["zanzibar", "march", "rollback"]
    assert found.terms[0].idf == pytest.approx(idf(1, found.corpus_size))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a -b", True),
        ('"a b"', True),
        ("a OR b", True),
        ("a-b or c", False),
        ("stored at -18 degrees", False),
        ('a 19" rack', False),
        ('" "', False),
    ],
)
def test_operators_are_noticed(alice, text, expected):
    assert store.analyze(text, scope=alice, config="english").has_operators is expected


def test_the_exact_scan_agrees_with_numpy(world, alice, many):
    index = searched_index()
    query = unit(np.random.default_rng(8), 1, index.dim)[0]
    found = store.dense_exact(query, scope=alice, index=index, depth=10, timeout_seconds=5)
    expected = sorted((many @ query).tolist(), reverse=True)[:10]
    assert [hit.signals["cosine"] for hit in found] == pytest.approx(expected, abs=2e-3)


def test_hnsw_finds_nearly_what_the_exact_scan_finds_under_a_scope(world, bob, many):
    index = searched_index()
    recalls = []
    for query in unit(np.random.default_rng(9), 10, index.dim):
        exact = store.dense_exact(query, scope=bob, index=index, depth=20, timeout_seconds=5)
        close = store.dense_hnsw(query, scope=bob, index=index, depth=20, ef_search=200, timeout_seconds=5)
        assert len(close) == 20
        assert [hit.score for hit in close] == sorted((hit.score for hit in close), reverse=True)
        recalls.append(len({hit.chunk_id for hit in exact} & {hit.chunk_id for hit in close}) / 20)
    assert np.mean(recalls) >= 0.9


def test_no_leg_returns_what_is_out_of_scope(world, bob, many):
    index = searched_index()
    query = unit(np.random.default_rng(10), 1, index.dim)[0]
    term = Term("rollback", 1, 1.0)
    rankings = (
        store.dense_exact(query, scope=bob, index=index, depth=5000, timeout_seconds=5),
        store.dense_hnsw(query, scope=bob, index=index, depth=1000, ef_search=1000, timeout_seconds=5),
        store.fulltext("'rollback'", terms=[term], scope=bob, search=SEARCH, depth=100, timeout_seconds=5),
    )
    with database.cursor() as cursor:
        cursor.execute(
            "SELECT document_id, ordinal FROM retrieval_embedding WHERE connection_id <> %s", [world.runbooks.pk]
        )
        hidden = {(document, ordinal) for document, ordinal in cursor.fetchall()}
    assert all(ranking for ranking in rankings)
    assert not any(tuple(hit.chunk_id) in hidden for ranking in rankings for hit in ranking)


def test_completing_leaves_out_what_is_out_of_scope(world, alice, bob):
    index = searched_index()
    query = unit(np.random.default_rng(11), 1, index.dim)[0]
    pool = store.dense_exact(query, scope=alice, index=index, depth=100, timeout_seconds=5)
    completed = store.complete(pool, vector=query, index=index, terms=(), scope=bob, search=SEARCH)
    assert len(completed) < len(pool)
    assert {hit.chunk.connection_id for hit in completed} == {world.runbooks.pk}


def test_the_full_text_score_is_the_sum_of_idf_times_ts_rank(world, alice):
    terms = [Term("rollback", 3, 0.5), Term("zanzibar", 1, 2.0)]
    (best, *_) = store.fulltext(
        store.any_of(terms), terms=terms, scope=alice, search=SEARCH, depth=10, timeout_seconds=5
    )
    with database.cursor() as cursor:
        cursor.execute(
            "SELECT 0.5 * ts_rank('{0.1,0.5,0.7,1.0}', search, 'rollback'::tsquery, 1)"
            " + 2.0 * ts_rank('{0.1,0.5,0.7,1.0}', search, 'zanzibar'::tsquery, 1)"
            " FROM retrieval_chunk WHERE document_id = %s AND ordinal = %s",
            list(best.chunk_id),
        )
        assert best.score == pytest.approx(cursor.fetchone()[0])


def plan_of(sql, parameters, settings=None):
    with database.cursor() as cursor:
        cursor.execute("ANALYZE retrieval_chunk, retrieval_embedding")
        for name, value in (settings or {}).items():
            cursor.execute("SELECT set_config(%s, %s, true)", [name, value])
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", parameters)
        plan = cursor.fetchone()[0]
    return plan if isinstance(plan, str) else json.dumps(plan)


def vector_parameters(index, scope):
    query = unit(np.random.default_rng(12), 1, index.dim)[0]
    return {
        "vector": HalfVector(query).to_text(),
        "index": index.id,
        "dim": index.dim,
        "scope": scope.connection_ids,
        "depth": 10,
    }


def test_the_hnsw_statement_uses_the_hnsw_index_and_no_parallel_scan(world, bob, many):
    index = searched_index()
    plan = plan_of(statements.DENSE_HNSW, vector_parameters(index, bob), store.ONLY_THE_HNSW_INDEX)
    assert f"retrieval_embedding_hnsw_{index.id}" in plan
    assert "Gather" not in plan
    assert "Seq Scan" not in plan


def test_the_exact_statement_does_not_touch_the_hnsw_index(world, bob, many):
    index = searched_index()
    assert "hnsw" not in plan_of(statements.DENSE_EXACT, vector_parameters(index, bob))


@pytest.fixture
def wordy(world):
    """Add 3,000 chunks to the runbooks, one word each."""
    document = world.runbooks.documents.first()
    with database.cursor() as cursor:
        cursor.execute(
            "INSERT INTO retrieval_chunk"
            " (document_id, ordinal, connection_id, text, heading_path, token_count, content_hash, search)"
            " SELECT %s, number, %s, '', '{}', 1, '', to_tsvector('simple', 'word' || number)"
            " FROM generate_series(1000, 3999) AS number",
            [document.pk, world.runbooks.pk],
        )


def test_the_full_text_statement_uses_the_search_index(world, bob, wordy):
    parameters = {
        "match": "'rollback'",
        "scope": bob.connection_ids,
        "depth": 10,
        "terms": ["'rollback'"],
        "idfs": [1.0],
        "weights": list(SEARCH.weights),
    }
    assert "chunk_search" in plan_of(statements.FULLTEXT, parameters)


def test_a_statement_that_outlives_its_time_is_a_timeout(alice):
    with pytest.raises(SearchTimeoutError):
        store._read("SELECT pg_sleep(5)", {}, timeout_seconds=0.05)


def test_a_lost_connection_is_an_unavailable_database(alice):
    with pytest.raises(DatabaseUnavailableError):
        store._read("SELECT pg_terminate_backend(pg_backend_pid())", {})
    database.close()


@pytest.mark.parametrize("lexeme", ["plain", "it's", "back\\slash", "a & b | !c", "''"])
def test_a_lexeme_is_quoted_as_itself(db, lexeme):
    with database.cursor() as cursor:
        cursor.execute("SELECT array_to_tsvector(ARRAY[%s]) @@ %s::tsquery", [lexeme, store.quoted(lexeme)])
        assert cursor.fetchone() == (True,)


def test_two_vector_indexes_do_not_mix(world, alice):
    other = VectorIndex(searched_index().id + 1, searched_index().dim)
    query = unit(np.random.default_rng(13), 1, other.dim)[0]
    assert store.dense_exact(query, scope=alice, index=other, depth=10, timeout_seconds=5) == ()
