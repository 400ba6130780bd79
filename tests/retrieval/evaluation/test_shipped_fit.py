"""Fitting the models that come with CoreCube."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from retrieval.models import SearchRecord
from retrieval.ranking.quotes.ranker import VECTOR_SIGNALS, WORD_SIGNALS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("unhurried")]

TOPICS = {
    "fees": ("Parking", "Hotel", "Lunch", "Ferry", "Locker", "Sauna"),
    "rules": ("Helmets", "Gloves", "Visitors", "Ladders", "Forklifts", "Batteries"),
}


@pytest.fixture
def questions(tmp_path):
    """Return a file of questions over two folders; each has a document a topic."""
    rows = []
    for collection, topics in TOPICS.items():
        folder = tmp_path / "corpora" / collection
        folder.mkdir(parents=True)
        for number, topic in enumerate(topics, start=3):
            about = f"This page is about {topic.lower()}.\n\n{topic} cost {number} euros a day. Ask Ann about it."
            (folder / f"{topic}.md").write_text(f"# {topic}\n\n{about}\n")
            row = {"question": f"How much do {topic.lower()} cost?", "kind": "number", "collection": collection}
            rows.append({"id": topic, "answers": [[f"{number} euros"]], **row})
            row["question"] = f"Zanzibar weather {number}?"
            rows.append({"id": f"no {topic}", "answers": [], **row})
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def judged(tmp_path):
    """Return a judged collection of two topics."""
    folder = tmp_path / "judged"
    (folder / "qrels").mkdir(parents=True)
    texts = {"d1": "The moon is made of rock.", "d2": "The sun is made of hydrogen."}
    corpus = [{"_id": name, "title": name, "text": text} for name, text in texts.items()]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(it) + "\n" for it in corpus))
    queries = [
        {"_id": f"q{name}", "text": f"What is the {word} made of?"} for name, word in (("d1", "moon"), ("d2", "sun"))
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps(it) + "\n" for it in queries))
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nqd1\td1\t1\nqd2\td2\t1\n")
    return folder


def fit(*arguments):
    out = StringIO()
    call_command("calibrate", *map(str, arguments), stdout=out, stderr=StringIO())
    return out.getvalue()


def test_both_models_are_fitted_and_measured_with_each_collection_left_out(world, questions, judged):
    corpora = questions.parent / "corpora"
    found = json.loads(fit("--shipped", questions, "--corpora", corpora, "--measure", judged))
    assert found["left_out"].keys() == set(TOPICS)
    for figures in found["left_out"].values():
        assert (figures["answerable"], figures["unanswerable"]) == (6, 6)
        assert figures["right"] == 6
    assert tuple(found["quotes"]["by_words"]["weights"]) == WORD_SIGNALS
    assert tuple(found["quotes"]["by_vectors"]["weights"]) == VECTOR_SIGNALS
    assert found["quotes"]["by_words"]["weights"]["form"] > 0
    assert found["answerability"]["without_sentences"]["weights"]
    assert not SearchRecord.objects.exists()


def test_it_needs_the_collections_and_a_judged_one(world, questions, judged):
    with pytest.raises(CommandError, match="--shipped needs --corpora and --measure"):
        fit("--shipped", questions, "--measure", judged)
