import numpy as np
import pytest
from django.db import connection as database

from corecube.errors import DatabaseUnavailableError, InvalidRequestError
from retrieval.engine.metadata_conditions import Condition, Conditions
from retrieval.engine.query import read_query
from retrieval.engine.state import RequestFilter
from retrieval.engine.types import ChunkId, Term
from retrieval.errors import SearchTimeoutError
from retrieval.index import store
from retrieval.index.filters import metadata_prefilter
from retrieval.index.lexemes import any_of, quoted
from retrieval.index.reading import read
from retrieval.index.statements import Reach
from retrieval.index.store import TextSearch, VectorIndex
from retrieval.models import Chunk, Document, Embedding
from retrieval.ranking.blend import idf

SEARCH = TextSearch((0.1, 0.5, 0.7, 1.0), 0.2)
ENGLISH = ["english"]


def asked(text):
    return read_query(text, characters=500)


def found(match, terms, scope, *, limit=1000, depth=100):
    return store.fulltext(match, terms=terms, scope=scope, search=SEARCH, depth=depth, limit=limit, timeout_seconds=5)


def capped(match, terms, scope, *, share, limit=1000, depth=100):
    return store.fulltext(
        match, terms=terms, scope=scope, search=SEARCH, depth=depth, limit=limit, share=share, timeout_seconds=5
    )


def test_document_frequencies_are_those_of_the_scope(world, alice, bob):
    def frequencies(scope):
        found = store.analyze(asked("rollback in March"), scope=scope, languages=ENGLISH)
        return found.corpus_size, {term.lexeme: term.document_frequency for term in found.terms}

    # Runbooks hold one chunk with "rollback"; the vault and the ledger one each, with "March".
    size = Chunk.objects.count()
    assert frequencies(alice) == (size, {"rollback": 3, "march": 2})
    assert frequencies(bob) == (
        Chunk.objects.filter(connection_id=world.runbooks.pk).count(),
        {"rollback": 1, "march": 0},
    )


def test_terms_come_rarest_first_with_their_idf(world, alice):
    found = store.analyze(asked("rollback March zanzibar"), scope=alice, languages=ENGLISH)
    assert [term.lexeme for term in found.terms] == ["zanzibar", "march", "rollback"]
    assert found.terms[0].idf == pytest.approx(idf(1, found.corpus_size))


@pytest.mark.parametrize(
    ("text", "match", "at_most"),
    [
        ("rollback March", "'march' & 'rollback'", 2),
        # Terms are those of what is wanted; the rarest one bounds what can match.
        ('"rollback costs" March', "'rollback' <-> 'cost' & 'march'", 1),
        ("rollback -March", "'rollback' & !'march'", 3),
        ("rollback OR March", "'rollback' | 'march'", 4),
        ("stored at -18 OR rollback", "'store' & '-18' | 'rollback'", 3),
        # An index finds nothing by what is absent.
        ("rollback OR -March", "", 3),
        ("the", "", 0),
    ],
)
def test_the_query_is_demanded_as_it_is_written(world, alice, text, match, at_most):
    found = store.analyze(asked(text), scope=alice, languages=ENGLISH)
    assert (found.all_terms, found.at_most) == (match, at_most)


def test_the_exact_scan_agrees_with_numpy(alice, index, unit, many):
    query = unit(8)[0]
    found = store.dense_exact(query, scope=alice, index=index, depth=10, timeout_seconds=5)
    expected = sorted((many @ query).tolist(), reverse=True)[:10]
    assert [hit.signals["cosine"] for hit in found] == pytest.approx(expected, abs=2e-3)


def test_hnsw_finds_nearly_what_the_exact_scan_finds_under_a_scope(bob, index, unit, many):
    recalls = []
    for query in unit(9, 10):
        exact = store.dense_exact(query, scope=bob, index=index, depth=20, timeout_seconds=5)
        close = store.dense_hnsw(query, scope=bob, index=index, depth=20, ef_search=200, timeout_seconds=5)
        assert len(close) == 20
        assert [hit.score for hit in close] == sorted((hit.score for hit in close), reverse=True)
        recalls.append(len({hit.chunk_id for hit in exact} & {hit.chunk_id for hit in close}) / 20)
    assert np.mean(recalls) >= 0.9


def test_no_leg_returns_what_is_out_of_scope(world, bob, index, unit, many):
    query = unit(10)[0]
    term = Term("rollback", 1, 1.0)
    rankings = (
        store.dense_exact(query, scope=bob, index=index, depth=5000, timeout_seconds=5),
        store.dense_hnsw(query, scope=bob, index=index, depth=1000, ef_search=1000, timeout_seconds=5),
        found("'rollback'", [term], bob).ranking,
        capped("'rollback'", [term], bob, share=1.0).ranking,
    )
    with database.cursor() as cursor:
        cursor.execute(
            "SELECT document_id, ordinal FROM retrieval_embedding WHERE connection_id <> %s", [world.runbooks.pk]
        )
        hidden = {(document, ordinal) for document, ordinal in cursor.fetchall()}
    assert all(ranking for ranking in rankings)
    assert not any(tuple(hit.chunk_id) in hidden for ranking in rankings for hit in ranking)


def test_every_leg_returns_only_what_conditions_leave_of_the_scope(world, alice, index, unit):
    Document.objects.filter(connection=world.ledger).update(metadata={"author": "Ada", "year": 2025})
    Document.objects.filter(connection=world.vault).update(metadata={"author": "Ada", "year": 2024})
    each = (Condition(("author",), "is", "ada"), Condition(("year",), ">", 2024.0))
    kept = metadata_prefilter(Conditions(each), scope=alice, timeout_seconds=5)
    assert (kept.names, kept.facts) == (("author", "year"), ('["Ada", "2025"]',))
    query, term = unit(10)[0], Term("rollback", 3, 1.0)
    both = {"scope": alice, "depth": 50, "timeout_seconds": 5, "request_filter": RequestFilter(metadata=kept)}
    near, words = {"index": index, **both}, {"terms": [term], "search": SEARCH, "limit": 50, **both}
    rankings = (
        store.dense_exact(query, **near),
        store.dense_hnsw(query, ef_search=100, **near),
        *(store.fulltext("'rollback'", reach=reach, **words).ranking for reach in Reach),
        store.fulltext("'rollback'", share=1.0, **words).ranking,
    )
    own = set(Document.objects.filter(connection=world.ledger).values_list("pk", flat=True))
    assert all({hit.chunk_id.document_id for hit in ranking} == own for ranking in rankings)


def test_conditions_on_too_much_are_refused(world, alice, monkeypatch):
    many = Condition(tuple(f"name {number}" for number in range(21)), "not empty")
    with pytest.raises(InvalidRequestError, match="at most 20 fields"):
        metadata_prefilter(Conditions((many,)), scope=alice, timeout_seconds=5)
    monkeypatch.setattr("retrieval.index.filters._LIMIT", 1)
    with pytest.raises(InvalidRequestError, match="Too many different values to filter by: title"):
        metadata_prefilter(Conditions((Condition(("title",), "is", "x"),)), scope=alice, timeout_seconds=5)


def test_completing_leaves_out_what_is_out_of_scope(world, alice, bob, index, unit):
    query = unit(11)[0]
    pool = store.dense_exact(query, scope=alice, index=index, depth=100, timeout_seconds=5)
    completed = store.complete(pool, vector=query, index=index, terms=(), scope=bob, search=SEARCH)
    assert len(completed) < len(pool)
    assert {hit.chunk.connection_id for hit in completed} == {world.runbooks.pk}


def test_vectors_are_read_where_they_are_wanted(alice, index, unit):
    query = unit(11)[0]
    pool = store.dense_exact(query, scope=alice, index=index, depth=100, timeout_seconds=5)
    gone = pool[0].chunk_id
    Embedding.objects.filter(document_id=gone.document_id, ordinal=gone.ordinal).delete()
    given = {"vector": query, "index": index, "terms": (), "scope": alice, "search": SEARCH}
    assert {hit.chunk.vector for hit in store.complete(pool, **given)} == {b""}
    read = {hit.chunk_id: hit.chunk.vector for hit in store.complete(pool, **given, with_vectors=True)}
    assert read[gone] == b""
    rows = Embedding.objects.filter(index_id=index.id)
    stored = {ChunkId(row.document_id, row.ordinal): row.vector.to_numpy().astype(">f2").tobytes() for row in rows}
    assert read == {hit.chunk_id: stored.get(hit.chunk_id, b"") for hit in pool}
    assert set(map(len, stored.values())) == {2 * index.dim}


def test_the_full_text_score_is_the_sum_of_idf_times_the_saturated_rank(world, alice):
    terms = [Term("rollback", 3, 0.5), Term("zanzibar", 1, 2.0)]
    (best, *_) = found(any_of(terms), terms, alice).ranking
    with database.cursor() as cursor:
        cursor.execute(
            "SELECT ts_rank('{0.1,0.5,0.7,1.0}', search, 'rollback'::tsquery, 1),"
            " ts_rank('{0.1,0.5,0.7,1.0}', search, 'zanzibar'::tsquery, 1)"
            " FROM retrieval_chunk WHERE document_id = %s AND ordinal = %s",
            list(best.chunk_id),
        )
        rollback, zanzibar = cursor.fetchone()
    assert best.score == pytest.approx(0.5 * rollback / (rollback + 0.2) + 2.0 * zanzibar / (zanzibar + 0.2))


def test_more_matches_than_may_be_scored_are_noticed(world, alice):
    term = Term("rollback", 3, 0.5)
    assert found("'rollback'", [term], alice, limit=3).scored == 3
    assert found("'rollback'", [term], alice, limit=2).scored == 3
    assert found("'rollback'", [term], alice, limit=1).scored == 2
    assert found("'nothing'", [term], alice).scored == 0


def places(matches):
    return {hit.chunk_id.document_id.int >> 122 for hit in matches.ranking}


COMMON = Term("common", 64, 0.1)


def test_of_a_common_term_titles_are_all_found_and_of_the_rest_a_share(world, bob, common):
    matches = capped("'common'", [COMMON], bob, share=0.25)
    assert places(matches) == {*range(16), *range(0, 64, 8)}
    best = places(capped("'common'", [COMMON], bob, share=0.25, depth=8))
    assert best == set(range(0, 64, 8))


def test_titles_that_are_too_common_too_are_only_part_of_the_share(world, bob, common):
    assert places(capped("'common'", [COMMON], bob, share=0.25, limit=7)) == set(range(16))


def test_the_whole_share_is_everything(world, bob, common):
    assert places(capped("'common'", [COMMON], bob, share=1.0, limit=7)) == set(range(64))
    whole = found("'common'", [COMMON], bob)
    assert capped("'common'", [COMMON], bob, share=1.0).ranking == whole.ranking


def test_a_statement_that_outlives_its_time_is_a_timeout(alice):
    with pytest.raises(SearchTimeoutError):
        read("SELECT pg_sleep(5)", {}, timeout_seconds=0.05)


def test_a_lost_connection_is_an_unavailable_database(alice):
    with pytest.raises(DatabaseUnavailableError):
        read("SELECT pg_terminate_backend(pg_backend_pid())", {})
    database.close()


@pytest.mark.parametrize("lexeme", ["plain", "it's", "back\\slash", "a & b | !c", "''"])
def test_a_lexeme_is_quoted_as_itself(db, lexeme):
    with database.cursor() as cursor:
        cursor.execute("SELECT array_to_tsvector(ARRAY[%s]) @@ %s::tsquery", [lexeme, quoted(lexeme)])
        assert cursor.fetchone() == (True,)


def test_two_vector_indexes_do_not_mix(alice, index, unit):
    other = VectorIndex(index.id + 1, index.dim)
    query = unit(13)[0]
    assert store.dense_exact(query, scope=alice, index=other, depth=10, timeout_seconds=5) == ()
