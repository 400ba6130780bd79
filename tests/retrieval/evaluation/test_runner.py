import json
import re

import pytest
from django.core.management import CommandError, call_command

from corecube.access import scope_for
from corecube.models import Connection
from retrieval.evaluation.corpus import evaluation_principal
from retrieval.evaluation.latency import percentiles
from retrieval.evaluation.runner import document_ranking
from retrieval.models import Document, SearchRecord, Sync
from tests.retrieval.conftest import hit

pytestmark = pytest.mark.usefixtures("unhurried")

DOCUMENTS = {"d1": "alpha alpha alpha", "d2": "beta beta beta", "d3": "gamma delta epsilon", "d4": "zeta eta theta"}


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "tiny"
    folder.mkdir()
    rows = [{"_id": name, "title": "", "text": text} for name, text in DOCUMENTS.items()]
    queries = [{"_id": "q1", "text": "alpha"}, {"_id": "q2", "text": "beta"}]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    # q1's answer is found first; q2's judged document shares no word with it and comes behind d2.
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\tmissing\t1\n")
    return folder


def evaluation(dataset, capsys):
    call_command("evaluate", str(dataset), "--json")
    return json.loads(capsys.readouterr().out)


def test_measures_are_means_over_the_judged_queries(db, dataset, capsys):
    found = evaluation(dataset, capsys)
    assert (found["preset"], found["dataset"], found["queries"]) == ("corecube", "tiny", 2)
    # One query answered at rank 1, one not at all: every measure is (1 + 0) / 2.
    for measure in ("nDCG@10", "R@2", "R@5", "R@10", "R@100", "RR@10", "AP@100"):
        assert found["measures"][measure] == pytest.approx(0.5)
    # Each leg found q1's document first as well; the only word of q2 stands in no judged document.
    legs = {leg: values["RR@10"] for leg, values in found["legs"].items()}
    assert legs == {"dense": 0.5, "fulltext": 0.5, "fused": 0.5}
    assert {"total", "dense", "fulltext", "assemble"} <= set(found["latency_ms"])
    assert set(found["latency_ms"]["total"]) == {"p50", "p95", "p99"}


def test_searches_that_fell_back_are_counted(db, dataset, capsys, settings):
    assert evaluation(dataset, capsys)["degraded"] == 0
    call_command("evaluate", str(dataset), "--preset", "helix")
    # This machine keeps no BM25 index.
    assert "tiny, 2 queries, 2 of them degraded" in capsys.readouterr().out


def test_the_collection_is_embedded_once(db, dataset, capsys):
    evaluation(dataset, capsys)
    evaluation(dataset, capsys)
    assert sorted(Sync.objects.values_list("added", "unchanged")) == [(0, 4), (4, 0)]


def test_nobody_else_sees_a_collection_and_no_query_is_left_in_the_log(world, dataset, capsys):
    evaluation(dataset, capsys)
    assert Document.objects.in_scope(scope_for(evaluation_principal())).count() == 4
    for name in ("alice", "bob", "charlie"):
        assert not [it for it in scope_for(world.principal(name)).included if it.connection.name == "Evaluation tiny"]
    assert not SearchRecord.objects.exists()


def test_an_unknown_preset_and_a_folder_that_is_no_dataset_are_named(db, dataset, tmp_path):
    with pytest.raises(CommandError, match="Unknown preset 'nope'"):
        call_command("evaluate", str(dataset), "--preset", "nope")
    with pytest.raises(CommandError, match=r"no corpus\.jsonl"):
        call_command("evaluate", str(tmp_path))


def corpus(folder, *rows):
    """Write a collection with these documents and one judged query."""
    folder.mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "alpha"}\n')
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\tgood\t1\n")
    return folder


def test_incomplete_and_repeated_documents_are_listed_as_problems(db, tmp_path, capsys):
    folder = corpus(
        tmp_path / "odd",
        {"_id": "good", "title": None, "text": "alpha"},
        {"_id": "good", "text": "beta"},
        {"_id": "titled", "title": "gamma"},
        {"_id": "null", "title": None, "text": None},
        {"_id": "number", "title": 7, "text": 8},
        {"_id": "n\0l", "text": "delta"},
    )
    evaluation(folder, capsys)
    assert set(Document.objects.values_list("external_id", flat=True)) == {"good", "titled", "n l"}
    problems = dict(Connection.objects.get().problems.values_list("external_id", "reason"))
    assert problems == {"good (duplicate 1)": "duplicate", "null": "no_text", "number": "no_text"}


def test_a_collection_has_a_slug_that_an_address_can_hold(db, tmp_path, capsys):
    evaluation(corpus(tmp_path / "my.data v2", {"_id": "good", "text": "alpha"}), capsys)
    connection = Connection.objects.get()
    assert connection.name == "Evaluation my.data v2"
    assert re.fullmatch(r"evaluation-mydata-v2-[0-9a-f]{8}", connection.slug)


def test_collections_of_one_name_have_a_connection_each(db, tmp_path, capsys):
    for folder in (tmp_path / "a" / "same", tmp_path / "b" / "same", tmp_path / ("n" * 60), tmp_path / ("n" * 61)):
        evaluation(corpus(folder, {"_id": "good", "text": "alpha"}), capsys)
    assert Connection.objects.count() == 4
    assert all(len(connection.slug) <= 50 for connection in Connection.objects.all())


def test_a_document_stands_at_its_best_chunk():
    hits = (hit(1), hit(2), hit(1), hit(3))
    names = {it.chunk_id.document_id: f"d{number}" for number, it in ((1, hit(1)), (2, hit(2)), (3, hit(3)))}
    assert document_ranking(hits, names) == ["d1", "d2", "d3"]


def test_percentiles_are_interpolated():
    # Of 0..100 the p-th percentile is p.
    assert percentiles(list(map(float, range(101)))) == {"p50": 50.0, "p95": 95.0, "p99": 99.0}
    assert percentiles([]) == {"p50": 0.0, "p95": 0.0, "p99": 0.0}
