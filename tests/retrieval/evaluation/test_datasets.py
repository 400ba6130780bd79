import json

import pytest

from corecube.errors import InvalidRequestError
from retrieval.evaluation.datasets import load_dataset


def write(directory, *, corpus=None, queries=None, qrels="query-id\tcorpus-id\tscore\nq1\td1\t1\n"):
    corpus = [{"_id": "d1", "title": "T", "text": "x"}] if corpus is None else corpus
    queries = [{"_id": "q1", "text": "x"}, {"_id": "q2", "text": "unjudged"}] if queries is None else queries
    (directory / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    (directory / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    (directory / "qrels.tsv").write_text(qrels)
    return directory


def test_only_judged_queries_are_kept(tmp_path):
    dataset = load_dataset(write(tmp_path))
    assert [query.id for query in dataset.queries] == ["q1"]
    assert dataset.qrels == {"q1": {"d1": 1}}
    assert [document["title"] for document in dataset.documents()] == ["T"]


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_named(tmp_path, name):
    (write(tmp_path) / name).unlink()
    with pytest.raises(InvalidRequestError, match=name):
        load_dataset(tmp_path)


def test_a_broken_line_is_named(tmp_path):
    (write(tmp_path) / "queries.jsonl").write_text('{"_id": "q1", "text": "x"}\nnot json\n')
    with pytest.raises(InvalidRequestError, match=r"queries\.jsonl, line 2"):
        load_dataset(tmp_path)


@pytest.mark.parametrize("qrels", ["a\tb\n1\t2\n", "query-id\tcorpus-id\tscore\nq1\td1\thigh\n"])
def test_malformed_judgments_are_refused(tmp_path, qrels):
    with pytest.raises(InvalidRequestError, match=r"qrels\.tsv"):
        load_dataset(write(tmp_path, qrels=qrels))


def test_a_judged_query_without_text_is_named(tmp_path):
    with pytest.raises(InvalidRequestError, match="query q1 has no text"):
        load_dataset(write(tmp_path, queries=[{"_id": "q1"}]))


def test_without_a_judged_query_there_is_nothing_to_measure(tmp_path):
    with pytest.raises(InvalidRequestError, match="no query"):
        load_dataset(write(tmp_path, qrels="query-id\tcorpus-id\tscore\nq9\td1\t1\n"))
