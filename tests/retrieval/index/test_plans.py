"""How PostgreSQL runs the search statements: a plan that changes costs a factor, not a percent."""

import json
from dataclasses import replace
from uuid import UUID

import pytest
from django.db import connection as database
from pgvector import HalfVector

from corecube.database import Prepared
from retrieval.engine.state import RequestFilter
from retrieval.index import statements, store
from retrieval.index.filters import filtered
from retrieval.index.scans import dense_statement
from tests.retrieval.index.conftest import rebuild

_WEIGHTS = [0.1, 0.5, 0.7, 1.0]


def plan_of(sql, parameters, settings=None):
    """Return the nodes of a statement's plan, as PostgreSQL would run it now; of a prepared one's for any values."""
    with database.cursor() as cursor:
        cursor.execute("ANALYZE retrieval_document, retrieval_chunk, retrieval_embedding, retrieval_termfrequency")
        for name, value in (settings or {}).items():
            cursor.execute("SELECT set_config(%s, %s, true)", [name, value])
        if isinstance(sql, Prepared):
            cursor.execute(f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {sql.numbered}")
        else:
            cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", parameters)
        plan = cursor.fetchone()[0]
    return list(nodes((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]))


def nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def indexes(plan):
    return {node["Index Name"] for node in plan if "Index Name" in node}


def scans(plan, relation):
    return {node["Node Type"] for node in plan if node.get("Relation Name") == relation}


@pytest.fixture
def vector(index, unit, bob):
    return {
        "vector": HalfVector(unit(12)[0]).to_text(),
        "index": index.id,
        "dim": index.dim,
        "scope": bob.connection_ids,
        "depth": 10,
        "candidates": 40,
        "scan_dim": 16,
    }


@pytest.fixture
def spread(world, many):
    """Hand nearly all of the many vectors to connections out of scope."""
    with database.cursor() as cursor:
        cursor.execute("UPDATE retrieval_embedding SET connection_id = 1000 + ordinal %% 40 WHERE ordinal >= 50", [])


@pytest.fixture
def wordy(world):
    """Add 3,000 chunks to a document in scope, each with a word of its own."""
    document = world.runbooks.documents.first()
    with database.cursor() as cursor:
        cursor.execute(
            "INSERT INTO retrieval_chunk"
            " (document_id, ordinal, connection_id, text, heading_path, token_count, content_hash, search)"
            " SELECT %s, number, %s, repeat('word ', 50), '{}', 1, '',"
            " setweight(to_tsvector('simple', 'word' || number), 'A')"
            " FROM generate_series(1000, 3999) AS number",
            [document.pk, world.runbooks.pk],
        )


@pytest.fixture
def terms(bob):
    return {
        "match": "'rollback'",
        "scope": bob.connection_ids,
        "depth": 10,
        "limit": 100,
        "until": "40000000-0000-0000-0000-000000000000",
        "term_1": "'rollback'",
        "idf_1": 1.0,
        "weights": _WEIGHTS,
        "saturation": 0.2,
    }


def test_the_hnsw_statement_walks_the_hnsw_index_alone(vector, index, many):
    plan = plan_of(statements.DENSE_HNSW, vector, store.ONLY_THE_HNSW_INDEX)
    assert indexes(plan) == {f"retrieval_embedding_hnsw_{index.id}"}
    assert [node["Node Type"] for node in plan] == ["Limit", "Index Scan"]


@pytest.mark.parametrize("scan", ["int8", "binary", "prefix"])
def test_a_quantised_statement_walks_its_hnsw_index_alone_and_then_compares_whole_vectors(vector, index, many, scan):
    walked = replace(index, scan=scan, scan_dim=16)
    rebuild(walked)
    plan = plan_of(dense_statement(scan, index.dim), vector, store.ONLY_THE_HNSW_INDEX)
    assert indexes(plan) == {f"retrieval_embedding_hnsw_{index.id}"}
    assert scans(plan, "retrieval_embedding") == {"Index Scan"}
    assert not {"Gather", "Gather Merge"} & {node["Node Type"] for node in plan}
    [found] = [node for node in plan if "Index Name" in node]
    assert "<=>" not in found["Order By"] or scan == "prefix"


@pytest.mark.parametrize("scan", ["halfvec", "int8", "binary", "prefix"])
def test_a_walk_looks_up_by_its_key_what_a_filter_asks_of_each_chunk(vector, index, wordy, many, scan):
    rebuild(replace(index, scan=scan, scan_dim=16))
    for kept, also in (
        (RequestFilter(hint="table", min_quality=0.25), {"retrieval_chunk_pkey"}),
        (RequestFilter(source_types=frozenset({"excel"})), {"retrieval_document_pkey"}),
        (RequestFilter(documents=frozenset({UUID(int=1), UUID(int=2)})), set()),
    ):
        sql, parameters = filtered(dense_statement(scan, index.dim), vector, kept)
        plan = plan_of(sql, parameters, store.ONLY_THE_HNSW_INDEX)
        assert indexes(plan) == {f"retrieval_embedding_hnsw_{index.id}", *also}
        assert scans(plan, "retrieval_embedding") == {"Index Scan"}
        assert "Seq Scan" not in scans(plan, "retrieval_chunk") | scans(plan, "retrieval_document")
        # Nothing of the filter is gathered beforehand: it is asked of what the walk meets.
        assert not {"Hash", "Materialize"} & {node["Node Type"] for node in plan}


def test_the_exact_statement_finds_chunks_of_too_low_a_quality_by_their_index(vector, wordy, many):
    with database.cursor() as cursor:
        cursor.execute("UPDATE retrieval_chunk SET quality = 0.1 WHERE ordinal %% 100 = 0", [])
    sql, parameters = filtered(statements.DENSE_EXACT, vector, RequestFilter(min_quality=0.25))
    plan = plan_of(sql, parameters)
    assert "chunk_by_quality" in indexes(plan)
    assert "Seq Scan" not in scans(plan, "retrieval_chunk")


def test_headings_are_found_by_their_index(bob, wordy):
    with database.cursor() as cursor:
        cursor.execute(
            "UPDATE retrieval_chunk SET heading_path = '{Word}', search = setweight(search, 'B') WHERE ordinal >= 1000"
        )
    asked = {"match": "'word1500':B", "terms": ["'word1500':B"], "idfs": [1.0], "scope": bob.connection_ids}
    kept = RequestFilter(min_quality=0.25)
    plan = plan_of(*filtered(statements.statement("headings"), asked | {"limit": 2000, "depth": 8}, kept))
    assert "chunk_headings" in indexes(plan)
    assert "Seq Scan" not in scans(plan, "retrieval_chunk")


def test_the_exact_statement_reads_the_scope_by_its_index(vector, spread):
    plan = plan_of(statements.DENSE_EXACT, vector)
    assert indexes(plan) == {"embedding_by_connection"}
    assert scans(plan, "retrieval_embedding") <= {"Index Scan", "Bitmap Heap Scan"}


def test_the_exact_statement_compares_all_of_a_large_scope(vector, many):
    assert not any("hnsw" in name for name in indexes(plan_of(statements.DENSE_EXACT, vector)))


def test_the_full_text_statement_uses_the_search_index(terms, wordy):
    plan = plan_of(statements.fulltext(1), terms)
    assert "chunk_search" in indexes(plan)
    assert scans(plan, "retrieval_chunk") == {"Bitmap Heap Scan"}


def test_the_capped_statement_finds_titles_by_their_index(terms, wordy):
    plan = plan_of(statements.scored(statements.FULLTEXT_CAPPED, 1), terms)
    assert "chunk_headings" in indexes(plan)
    assert "Seq Scan" not in scans(plan, "retrieval_chunk")


def test_document_frequencies_are_read_from_their_index(bob, wordy):
    with database.cursor() as cursor:
        cursor.execute(
            "INSERT INTO retrieval_termfrequency (connection_id, lexeme, chunks)"
            " SELECT %s, 'word' || number, 1 FROM generate_series(1000, 3999) AS number",
            [bob.connection_ids[0] + 1000],
        )
    asked = {"text": "rollback", "operators": "", "languages": ["english"], "scope": bob.connection_ids}
    plan = plan_of(statements.ANALYZE, asked)
    assert "term_frequency_by_lexeme" in indexes(plan)
    assert "Seq Scan" not in scans(plan, "retrieval_termfrequency")


def test_completing_looks_each_chunk_up_by_its_key(vector, terms, wordy, many):
    pool = {"documents": ["10000000-0000-0000-0000-000000000000"] * 5, "ordinals": list(range(5))}
    given = {"terms": ["'rollback'"], "idfs": [1.0]}
    plan = plan_of(statements.COMPLETE, vector | terms | pool | given)
    assert {"retrieval_chunk_pkey", "retrieval_embedding_pkey"} <= indexes(plan)
    assert "Seq Scan" not in scans(plan, "retrieval_chunk") | scans(plan, "retrieval_embedding")


@pytest.mark.parametrize("statement", [statements.DENSE_HNSW, statements.DENSE_EXACT])
def test_no_vector_statement_runs_in_parallel(vector, many, statement):
    # Workers take longer to start than a search may; a parallel scan of all vectors took ten times the index's time.
    plan = plan_of(statement, vector, store.ONLY_THE_HNSW_INDEX if statement == statements.DENSE_HNSW else None)
    assert not {"Gather", "Gather Merge"} & {node["Node Type"] for node in plan}
