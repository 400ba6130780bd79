import json

import pytest
from django.core.management import CommandError, call_command

from corecube.access import scope_for
from retrieval.evaluate.corpus import evaluation_principal
from retrieval.evaluate.latency import percentiles
from retrieval.evaluate.runner import document_ranking
from retrieval.models import Document, SearchRecord, Sync
from tests.retrieval.conftest import hit

DOCUMENTS = {
    "d1": "alpha alpha alpha",
    "d2": "beta beta beta",
    "d3": "gamma delta epsilon",
    "d4": "zeta eta theta",
}


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
    assert {"total", "dense", "fulltext", "assemble"} <= set(found["latency_ms"])
    assert set(found["latency_ms"]["total"]) == {"p50", "p95", "p99"}


def test_the_collection_is_embedded_once(db, dataset, capsys):
    evaluation(dataset, capsys)
    evaluation(dataset, capsys)
    assert sorted(Sync.objects.values_list("added", "unchanged")) == [(0, 4), (4, 0)]


def test_nobody_else_sees_a_collection_and_no_query_is_left_in_the_log(world, dataset, capsys):
    evaluation(dataset, capsys)
    assert Document.objects.in_scope(scope_for(evaluation_principal())).count() == 4
    for name in ("alice", "bob", "charlie"):
        assert "evaluation-tiny" not in [it.connection.slug for it in scope_for(world.principal(name)).included]
    assert not SearchRecord.objects.exists()


def test_an_unknown_preset_and_a_folder_that_is_no_dataset_are_named(db, dataset, tmp_path):
    with pytest.raises(CommandError, match="There is no preset 'nope'"):
        call_command("evaluate", str(dataset), "--preset", "nope")
    with pytest.raises(CommandError, match=r"no corpus\.jsonl"):
        call_command("evaluate", str(tmp_path))


def test_a_document_stands_at_its_best_chunk():
    hits = (hit(1), hit(2), hit(1), hit(3))
    names = {it.chunk_id.document_id: f"d{number}" for number, it in ((1, hit(1)), (2, hit(2)), (3, hit(3)))}
    assert document_ranking(hits, names) == ["d1", "d2", "d3"]


def test_percentiles_are_interpolated():
    # Of 0..100 the p-th percentile is p.
    assert percentiles(list(map(float, range(101)))) == {"p50": 50.0, "p95": 95.0, "p99": 99.0}
    assert percentiles([]) == {"p50": 0.0, "p95": 0.0, "p99": 0.0}
