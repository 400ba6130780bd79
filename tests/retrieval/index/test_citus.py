"""Documents on the shards of a Citus cluster: what one node finds, they find.

CORECUBE_TEST_CITUS_URL names a database of a cluster, with the extensions citus and vector on every machine.
"""

import json
import os
import subprocess
import sys

import pytest
from django.apps import apps
from django.conf import settings

from retrieval.index.citus import for_shards
from retrieval.index.distribution import placements
from retrieval.index.statements import statement
from tests.environment import environment_of, link_downloads

_URL = os.environ.get("CORECUBE_TEST_CITUS_URL")
on_a_cluster = pytest.mark.skipif(not _URL, reason="CORECUBE_TEST_CITUS_URL names no database")
_TABLES = 13


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("citus")
    link_downloads(folder)
    environment = environment_of(folder, DATABASE_URL=_URL, CORECUBE_LEG_THREADS="0")
    command = [sys.executable, "-m", "tests.retrieval.index.citus_run"]
    ran = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-9000:]
    return json.loads(ran.stdout)


@on_a_cluster
def test_distributing_moves_every_row_and_nothing_the_second_time(run):
    assert len(run["moved"]) == _TABLES
    assert run["moved_again"] == []
    assert run["shards"]["counts"] == run["single"]["counts"]


@on_a_cluster
def test_every_shard_of_the_vectors_has_an_hnsw_index(run):
    assert run["hnsw"] == ["1"] * 8


@on_a_cluster
def test_no_form_of_any_statement_is_refused(run):
    assert run["refused"] == []
    assert run["ran"] > 150


@on_a_cluster
def test_no_machine_sends_more_rows_than_are_wanted(run):
    assert run["pulled"] == {}


@on_a_cluster
def test_a_follower_reads_no_document_as_it_was_before(run):
    assert run["reads"] >= 600
    assert run["stale"] == 0


@on_a_cluster
def test_chunks_counts_and_outbox_agree_after_writers_were_killed(run):
    assert run["disagreeing"] == {"chunks": [], "terms": [], "outbox": []}


@on_a_cluster
def test_settings_of_a_read_reach_the_shards(run):
    assert run["ef_search"] == [{"size": "123"}]


@on_a_cluster
def test_each_question_finds_the_same_as_on_one_node(run):
    single, shards = run["single"]["answers"], run["shards"]["answers"]
    assert len(single) == 4 * 33
    assert {it for it in single if single[it] != shards[it]} == set()


@on_a_cluster
def test_walks_find_as_many_of_the_nearest_as_on_one_node(run):
    assert run["shards"]["recall"] >= run["single"]["recall"] - 0.01


@on_a_cluster
def test_everything_can_be_taken_back(run):
    assert run["undone"] == 0
    assert run["foreign_keys"] == 1


def test_every_table_with_a_documents_id_as_its_key_is_distributed_by_it():
    keyed = {
        it._meta.db_table
        for it in apps.get_app_config("retrieval").get_models()
        if it._meta.pk_fields[0].column == "document_id"
    }
    by_document = {it.table for it in placements() if it.column == "document_id"}
    assert by_document == keyed
    assert {"retrieval_chunk", "retrieval_embedding", "retrieval_chunkmentions"} <= keyed


def test_the_documents_are_distributed_before_what_is_made_of_them():
    tables = [it.table for it in placements()]
    assert tables.index("retrieval_document") < tables.index("retrieval_chunk")
    assert len(tables) == len(set(tables)) == _TABLES


@pytest.mark.parametrize(("name", "stops"), [("graph_edges", 2), ("graph_common", 1), ("graph_names", 1)])
def test_shards_read_on_where_only_one_node_can_stop(name, stops):
    sql = statement(name)
    assert sql.count("-- on one node") == stops
    assert sql.count("LIMIT") - for_shards(sql).count("LIMIT") == stops
    assert "on one node" not in for_shards(sql).partition("\nSELECT")[2]


@pytest.mark.parametrize("part", ["filtered", "metadata"])
def test_shards_look_up_the_documents_that_one_node_lists(part):
    sql = statement(f"parts/{part}").replace("{document}", "chunk.document_id")
    assert sql.count("chunk.document_id IN (") == 1
    assert " IN (" not in for_shards(sql).split("FROM retrieval_document")[0]
    assert "WHERE document.id = chunk.document_id AND" in for_shards(sql)


def test_other_statements_are_sent_to_shards_as_they_are():
    assert for_shards(statement("complete")) == statement("complete")
