"""The bench against the real server, once, in a scratch database beside the tests' own."""

import json
from dataclasses import dataclass
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from retrieval.evaluation.bench.corpus import bench_principal
from retrieval.evaluation.bench.plan import Plan
from retrieval.evaluation.bench.runner import recipe
from retrieval.evaluation.bench.scratch import _LOCK, scratch_database
from retrieval.evaluation.bench.workload import KnownQueries, sample_queries
from retrieval.evaluation.latency import quickest_ms
from retrieval.index.statements import statement
from retrieval.models import SearchRecord
from tests.profiles import PROFILE, nightly
from tests.retrieval.evaluation.conftest import copy_migrated

# Without a marked test, pytest-django leaves the tests at the installation's own database.
pytestmark = pytest.mark.django_db

PLAN = Plan(preset="corecube", chunks=1000, scopes=(50, 5), queries=8, seed=0)
#: Searches in new processes and over HTTP; only the nightly profile measures them.
_OTHER_PROCESSES = {"default": ["--no-first", "--readers"], "nightly": ["--readers", "2"]}[PROFILE]
COUNTS = """
SELECT (SELECT count(*) FROM retrieval_chunk), (SELECT count(*) FROM retrieval_embedding),
       (SELECT count(*) FROM retrieval_document), (SELECT count(DISTINCT connection_id) FROM retrieval_chunk)
"""
FOREIGN_STEMS = """
SELECT count(*) FROM retrieval_chunk, unnest(regexp_split_to_array(replace(lower(text), '.', ''), ' ')) AS word
WHERE NOT word = ANY(tsvector_to_array(search))
"""
MISCOUNTED = """
SELECT count(*)
FROM ts_stat('SELECT search FROM retrieval_chunk') AS real
FULL JOIN (
    SELECT lexeme AS word, sum(chunks) AS chunks FROM retrieval_termfrequency WHERE lexeme <> '' GROUP BY lexeme
) AS kept USING (word)
WHERE real.ndoc IS DISTINCT FROM kept.chunks
"""
CHUNK = """
SELECT document_id AS document, connection_id AS connection, text, heading_path, array_to_string(heading_path, E'\n')
       AS headings, title, token_count, content_hash, page_start, page_end, search,
       row_start, row_end, quality, quality_parts, simhash, section_start, section_end, retrieval_chunk.language, hints,
       minhash, context_line, questions, links, triples, '' AS asked
FROM retrieval_chunk JOIN retrieval_document AS document USING (connection_id)
WHERE document.id = document_id AND ordinal = 0
ORDER BY document_id LIMIT 1
"""
SEARCH_VECTOR = "SELECT search FROM retrieval_chunk WHERE document_id = %s AND ordinal = 999"
INDEXES = "SELECT indexname FROM pg_indexes WHERE tablename LIKE 'retrieval_%'"


@dataclass(frozen=True)
class Story:
    """What was seen while one database was made, kept, used again and dropped."""

    application: str
    migrated_indexes: set[str]
    first: dict[str, Any]
    content: dict[str, Any]
    second: dict[str, Any]
    left_over: bool


@pytest.fixture(scope="module")
def server(django_db_setup, django_db_blocker):
    """Let a test use the database outside a transaction; the scratch database is gone before and after."""
    with django_db_blocker.unblock():
        assert scratch_name().startswith("test_"), "this would drop an installation's own scratch database"
        drop_scratch()
        yield
        drop_scratch()
        connection.close()


@pytest.fixture(scope="module")
def story(server):
    application = connection.settings_dict["NAME"]
    migrated_indexes = indexes()
    with pytest.MonkeyPatch.context() as patch:
        if PROFILE == "default":
            copy_migrated(patch)
        first = run("--keep", *_OTHER_PROCESSES)
    with scratch_database(recipe(PLAN), keep=True):
        content = observed()
    second = run("--no-first", "--passes=3", "--preset=helix", "--scan=binary", "--oversample=6", "--readers")
    return Story(application, migrated_indexes, first, content, second, scratch_exists())


def scratch_name():
    return f"{connection.settings_dict['NAME']}_bench"


def scratch_exists():
    return bool(rows("SELECT 1 FROM pg_database WHERE datname = %s", scratch_name()))


def drop_scratch():
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {connection.ops.quote_name(scratch_name())}")


def run(*options, chunks=PLAN.chunks):
    output = StringIO()
    scopes = map(str, PLAN.scopes)
    call_command(
        "bench",
        f"--chunks={chunks}",
        "--scope",
        *scopes,
        f"--queries={PLAN.queries}",
        "--json",
        *options,
        stdout=output,
    )
    return json.loads(output.getvalue())


def rows(sql, *parameters):
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters or None)
        return cursor.fetchall()


def observed():
    return {
        "database": connection.settings_dict["NAME"],
        "counts": rows(COUNTS)[0],
        "foreign stems": rows(FOREIGN_STEMS)[0][0],
        "miscounted": rows(MISCOUNTED)[0][0],
        "search vectors": search_vectors(),
        "indexes": indexes(),
        "queries": [sample_queries(PLAN, 5, 4) for _ in range(2)],
        "records": SearchRecord.objects.count(),
        "user": bench_principal().user,
    }


def indexes():
    return {name for (name,) in rows(INDEXES)}


def search_vectors():
    """Return a chunk's search vector as the bench made it, and as ingestion makes it of the same chunk."""
    with connection.cursor() as cursor:
        cursor.execute(CHUNK)
        names = [column.name for column in cursor.description]
        chunk = dict(zip(names, cursor.fetchone(), strict=True))
        cursor.execute(statement("upkeep/insert_chunk"), chunk | {"ordinal": 999, "config": "english"})
    [(ingested,)] = rows(SEARCH_VECTOR, chunk["document"])
    rows("DELETE FROM retrieval_chunk WHERE ordinal = 999 RETURNING 1")
    return chunk["search"], ingested


def test_the_report_has_the_figures(story):
    report = story.first
    assert (report["preset"], report["chunks"], report["queries"]) == ("corecube", 1000, 8)
    assert {"total", "analyze", "dense", "fulltext", "fuse", "assemble"} <= report["latency_ms"].keys()
    assert all(row["p50"] <= row["p95"] <= row["p99"] for row in report["latency_ms"].values())
    assert report["index_bytes"] == sum(report["index_bytes_by_name"].values())
    assert report["index_bytes_by_name"]["chunk_search"] > 0
    assert report["build_seconds"] == pytest.approx(sum(report["build_seconds_by_step"].values()), abs=0.01)
    assert report["peak_rss_bytes"] > 2**20
    legs = report["scopes"][0]["legs_ms"]
    assert (len(legs), legs) == (8, sorted(legs))
    assert min(legs) > 0


def test_a_small_scope_is_compared_exactly_so_nothing_is_missed(story):
    assert story.first["recall_against_exact"] == 1
    assert story.first["scopes"][0]["notes"]["dense_exact"] == 8


@nightly
def test_the_first_search_of_a_new_process_is_measured_warmed_up_and_not(story):
    warmed, cold = story.first["first_searches"]
    assert (warmed["is_warmed"], cold["is_warmed"], cold["warm_up_seconds"]) == (True, False, 0)
    assert 0 < warmed["milliseconds"] < cold["milliseconds"]
    assert warmed["warm_up_seconds"] > 0
    assert story.second["first_searches"] == []


def test_the_memory_of_process_and_server_is_told(story):
    assert story.first["own_bytes"] > 2**25
    assert story.first["server_bytes"] > 2**25


def test_cpu_time_is_that_of_process_and_server(story):
    for scope in (*story.first["scopes"], *story.second["scopes"]):
        cpu_ms = scope["cpu_ms"]
        assert cpu_ms["own"] > 0
        assert cpu_ms["total"] == pytest.approx(cpu_ms["own"] + cpu_ms["server"])


@nightly
def test_readers_search_over_http_by_the_known_vectors(story):
    (readers,) = story.first["over_http"]
    assert (readers["readers"], readers["searches"], readers["failed"]) == (2, 8, {})
    assert readers["per_second"] > 0
    assert 0 < readers["latency_ms"]["p50"] <= readers["latency_ms"]["p99"]
    assert readers["cpu_ms"]["own"] > 0
    assert story.second["over_http"] == []


def test_a_kept_database_is_walked_by_another_scan(story):
    assert (story.first["scan"]["scan"], story.second["scan"]) == (
        "halfvec",
        {"scan": "binary", "dim": 0, "oversample": 6},
    )
    hnsw = "retrieval_embedding_hnsw_1"
    assert story.second["index_bytes_by_name"][hnsw] < story.first["index_bytes_by_name"][hnsw] / 2
    assert all(0.5 < scope["walk_recall"] <= 1 for it in (story.first, story.second) for scope in it["scopes"])
    assert story.second["recall_against_exact"] == 1


def test_the_steps_of_helix_are_held_against_their_budgets(story):
    rows = {row["step"]: row for row in story.second["scopes"][0]["budget"]}
    assert rows["3a dense"]["budget_ms"] == 25
    assert rows["1 embed"]["taken_ms"]["p50"] > 0
    assert rows["total"]["taken_ms"] == story.second["latency_ms"]["total"]
    assert story.first["scopes"][0]["budget"] == []


def test_each_scope_has_its_figures_and_the_first_stands_at_the_top(story):
    scopes = story.first["scopes"]
    assert [it["scope_percent"] for it in scopes] == [50, 5]
    assert {name: story.first[name] for name in ("scope_percent", "queries", "latency_ms")} == {
        name: scopes[0][name] for name in ("scope_percent", "queries", "latency_ms")
    }


def test_of_several_passes_each_query_counts_at_its_quickest_too(story):
    once, thrice = story.first["scopes"][0], story.second["scopes"][0]
    assert (once["passes"], once["quickest_ms"]) == (1, None)
    assert (thrice["passes"], thrice["queries"], thrice["notes"]["ranked_as"]) == (3, 8, 24)
    assert 0 < thrice["quickest_ms"]["p50"] <= thrice["latency_ms"]["total"]["p50"]
    assert thrice["quickest_ms"]["p95"] <= thrice["latency_ms"]["total"]["p95"]


def test_the_quickest_of_three_queries_in_two_passes():
    # 4 of (4, 8), 2 of (9, 2) and 6 of (6, 6); of 2, 4 and 6 the 95th percentile lies nine tenths between the last two.
    assert quickest_ms([4, 9, 6, 8, 2, 6], queries=3) == {"p50": 4.0, "p95": 5.8, "p99": 5.96}


def test_a_kept_database_is_used_again(story):
    assert (story.first["reused"], story.second["reused"]) == (False, True)
    # Both follow the database before each run: they create what is missing, or look whether anything is.
    kept = story.first["build_seconds_by_step"].keys() - {"vector_index", "vectors", "bm25"}
    assert {it: story.second["build_seconds_by_step"][it] for it in kept} == {
        it: story.first["build_seconds_by_step"][it] for it in kept
    }
    assert story.second["index_bytes_by_name"].keys() == story.first["index_bytes_by_name"].keys()


def test_the_database_is_dropped_in_the_end_and_django_is_back_at_its_own(story):
    assert story.content["database"] == f"{story.application}_bench"
    assert not story.left_over
    assert connection.settings_dict["NAME"] == story.application


def test_everything_is_there(story):
    assert story.content["counts"] == (1000, 1000, 300, 100)
    assert story.content["records"] == 0


def test_every_word_is_its_own_stem(story):
    assert story.content["foreign stems"] == 0


def test_terms_are_counted_as_they_stand(story):
    assert story.content["miscounted"] == 0


def test_search_vectors_are_those_of_ingestion(story):
    made, ingested = story.content["search vectors"]
    assert made == ingested


def test_the_indexes_are_those_of_an_installation_and_the_vector_index(story):
    # Vector indexes that other tests made in their database are no migration's.
    migrated = {name for name in story.migrated_indexes if "_hnsw_" not in name}
    assert story.content["indexes"] == migrated | {"retrieval_embedding_hnsw_1"}


def test_queries_are_the_same_each_time_and_their_vectors_known(story):
    first, again = story.content["queries"]
    assert [query.text for query in first] == [query.text for query in again]
    # Half of them speak of a document by its name of two words.
    assert all(2 <= len(query.text.split()) <= 8 for query in first)
    encoder = KnownQueries({query.text: query.vector for query in first})
    assert (encoder.encode_query(first[0].text) == again[0].vector).all()


@pytest.mark.django_db(transaction=True)
def test_two_runs_do_not_share_the_database(server):
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        with pytest.raises(CommandError, match="Another benchmark"):
            run()


@pytest.mark.django_db(transaction=True)
def test_a_database_of_somebody_else_is_left_alone(server):
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {connection.ops.quote_name(scratch_name())}")
    try:
        with pytest.raises(CommandError, match="did not create"):
            run()
        assert scratch_exists()
    finally:
        drop_scratch()


@pytest.mark.usefixtures("migrated_scratch")
def test_an_unfinished_database_is_not_kept(server):
    with pytest.raises(RuntimeError), scratch_database(recipe(PLAN), keep=True):
        raise RuntimeError
    assert not scratch_exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--chunks=10"], "between 1,000 and 5,000,000"), (["--preset=nonsense"], "Unknown preset 'nonsense'")],
)
def test_bad_options_are_named_before_anything_is_built(options, message):
    with pytest.raises(CommandError, match=message):
        call_command("bench", *options)
