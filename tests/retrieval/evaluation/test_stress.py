"""The stress tests: repeatable, and no more than they say."""

import json

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from corecube.models import Connection
from retrieval.evaluation.datasets import load_dataset
from retrieval.evaluation.stress import Stress, in_one_case, misspelled, with_common_titles, with_false_links
from retrieval.graph.question import within_one_letter
from retrieval.graph.spans import words_of
from retrieval.models import Chunk, Sync

PAGES = {
    "guy": ("Guy of Tuscany", "Guy was a count. His brother was Lambert."),
    "lambert": ("Lambert of Spoleto", "A margrave, dismissed in the year 931."),
    "provence": ("Provence", "A county in the south."),
    "untitled": ("", "Notes without a title."),
}
QUESTIONS = {
    "named": "When was the brother of Guy of Tuscany dismissed in Provence?",
    "plain": "which margrave was dismissed?",
}


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "pages"
    found.mkdir()
    rows = [{"_id": name, "title": title, "text": text} for name, (title, text) in PAGES.items()]
    (found / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = [{"_id": name, "text": text} for name, text in QUESTIONS.items()]
    (found / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    (found / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nnamed\tlambert\t1\nplain\tlambert\t1\n")
    return found


@pytest.fixture
def dataset(folder):
    return load_dataset(folder)


def texts(dataset):
    return {query.id: query.text for query in dataset.queries}


@pytest.mark.parametrize("seed", range(40))
def test_each_name_gets_one_wrong_letter_and_nothing_else_changes(dataset, seed):
    found = texts(misspelled(dataset, seed=seed))
    assert found["plain"] == QUESTIONS["plain"]
    before, after = (words_of(text) for text in (QUESTIONS["named"], found["named"]))
    pairs = [(one.form, other.form) for one, other in zip(before, after, strict=True) if one.form != other.form]
    # "Guy" and "of" are too short to be misspelled.
    assert [one for one, _ in pairs] == ["tuscany", "provence"]
    assert all(within_one_letter(one, other) and one[0] == other[0] for one, other in pairs)


def test_one_seed_makes_the_same_mistakes(dataset):
    assert texts(misspelled(dataset)) == texts(misspelled(dataset))
    assert len({texts(misspelled(dataset, seed=seed))["named"] for seed in range(10)}) > 5


def test_a_document_names_those_like_it_and_never_itself(dataset):
    near = {"guy": [1, 0], "lambert": [0.9, 0.1], "provence": [0, 1], "untitled": [1, 0]}
    vectors = {name: np.array(vector, np.float32) for name, vector in near.items()}
    rows = {row["_id"]: row["text"] for row in with_false_links(dataset, vectors).documents()}
    assert rows["guy"] == f"{PAGES['guy'][1]} It is listed with Lambert of Spoleto. It is listed with Provence."
    assert rows["provence"].startswith(f"{PAGES['provence'][1]} It is listed with Lambert of Spoleto.")
    assert rows["untitled"] == PAGES["untitled"][1]


def test_twenty_are_named_at_the_most(dataset, tmp_path):
    rows = [json.dumps({"_id": str(number), "title": f"Page {number}", "text": "text"}) for number in range(30)]
    (tmp_path / "pages" / "corpus.jsonl").write_text("\n".join(rows))
    vectors = dict(zip(map(str, range(30)), np.eye(30, dtype=np.float32), strict=True))
    assert {row["text"].count("listed") for row in with_false_links(dataset, vectors).documents()} == {20}


@pytest.mark.parametrize(("stress", "change"), [(Stress.CAPITALS, str.upper), (Stress.LOWER, str.lower)])
def test_documents_and_questions_are_written_in_one_case(dataset, stress, change):
    found = in_one_case(dataset, stress)
    assert texts(found) == {name: change(text) for name, text in QUESTIONS.items()}
    rows = {row["_id"]: (row["title"], row["text"]) for row in found.documents()}
    assert rows == {name: (change(title), change(text)) for name, (title, text) in PAGES.items()}


def test_every_tenth_document_is_called_by_a_common_word(dataset, tmp_path):
    rows = [
        {
            "_id": str(number),
            "title": f"Page {number}",
            "text": f"some flow, often {'water' if number % 2 else 'steam'}",
        }
        for number in range(21)
    ]
    (tmp_path / "pages" / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = list(with_common_titles(dataset).documents())
    # "often" is in all, "steam" in 11, "water" in 10; shorter words are none.
    assert {row["_id"]: row["title"] for row in found[::10]} == {"0": "Often", "10": "Steam", "20": "Water"}
    assert [row for place, row in enumerate(found) if place % 10] == [
        row for place, row in enumerate(rows) if place % 10
    ]


def test_the_command_measures_each(db, folder, capsys):
    for stress, names in (("typos", 1), ("links", 2), ("capitals", 3), ("lower", 4), ("titles", 5)):
        call_command("evaluate", str(folder), "--json", "--stress", stress)
        found = json.loads(capsys.readouterr().out)
        assert found["dataset"] == f"pages, {stress}"
        assert Connection.objects.count() == names
    assert Chunk.objects.filter(text__contains="It is listed with").count() == 3
    assert not Chunk.objects.filter(document__connection__name="Evaluation pages", text__contains="listed").exists()
    assert set(Sync.objects.values_list("failed", flat=True)) == {0}


def test_a_question_set_is_not_stressed(db):
    with pytest.raises(CommandError, match="needs a directory"):
        call_command("evaluate", "--set", "any", "--stress", "typos")
