"""`manage.py calibrate --measure`: every condition through the production path, on a small collection."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from corecube.models import Connection
from retrieval.evaluation.answerability import Survey, questions_of, survey
from retrieval.evaluation.answerability_figures import SHARES, Condition, Measured, figures, out_of_fold, weighted
from retrieval.evaluation.corpus import evaluation_principal, remove, scattered
from retrieval.evaluation.datasets import load_dataset
from retrieval.models import Document, SearchRecord

pytestmark = pytest.mark.usefixtures("unhurried")

TOPICS = ("harbour", "lantern", "glacier", "orchard", "granite")
FACTS = ("opened in {n} by Ivar", "measures {n} metres across", "belongs to Sigrid since {n}")


def write(folder, corpus, queries, qrels):
    folder.mkdir()
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus))
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    lines = [f"{query}\t{document}\t1" for query, document in qrels]
    (folder / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
    return folder


@pytest.fixture
def collection(tmp_path):
    """Five articles of three paragraphs, a question for each, and one that no paragraph answers for each article."""
    corpus, queries, qrels = [], [], []
    for number, topic in enumerate(TOPICS):
        for place, fact in enumerate(FACTS):
            name = f"{topic}#{place}"
            text = f"The {topic} {fact.format(n=1000 + 10 * number + place)}."
            corpus.append({"_id": name, "title": topic.capitalize(), "text": text})
            metadata = {"is_impossible": False, "paragraph": name}
            queries.append({"_id": name, "text": text.replace("The", "Is it so that the"), "metadata": metadata})
            qrels.append((name, name))
        odd = {"is_impossible": True, "paragraph": f"{topic}#0"}
        queries.append({"_id": f"{topic}!", "text": f"Who never painted the {topic}?", "metadata": odd})
    folder = write(tmp_path / "tiny", corpus, queries, qrels)
    (folder / "distractors.jsonl").write_text('{"_id": "D", "title": "Kettle", "text": "A kettle boils."}\n')
    return folder


@pytest.fixture
def other(tmp_path):
    query = {"_id": "q", "text": "boundary layer of a cone at zero incidence"}
    return write(tmp_path / "other", [{"_id": "d", "text": "x"}], [query], [("q", "d")])


def test_a_search_can_do_without_documents_or_whole_articles(db, collection):
    evaluation_principal()
    corpus = scattered(load_dataset(collection), lambda: None)
    assert len(corpus.slugs) == Connection.objects.count() == Document.objects.count() == 16
    assert corpus.of_same_title(["harbour#1"]) == {"harbour#0", "harbour#1", "harbour#2"}
    kept = corpus.without(["harbour#1"]).include
    assert len(kept) == 15
    assert corpus.slugs["harbour#1"] not in kept
    remove(corpus)
    assert not Connection.objects.exists()
    assert not Document.objects.exists()


def test_every_condition_is_asked(db, collection, other):
    how = Survey(preset="corecube", max_questions=100, progress=lambda: None)
    result = survey(load_dataset(collection), [load_dataset(other)], how)
    counts = {it: sum(row.condition is it for row in result.measured) for it in Condition}
    assert counts == {
        Condition.ANSWERABLE: 15 - result.missed,
        Condition.PASSAGE_REMOVED: 15,
        Condition.ARTICLE_REMOVED: 15,
        Condition.ADVERSARIAL: 5,
        Condition.OTHER_DOMAIN: 1,
    }
    assert {row.group for row in result.measured} == {*(topic.capitalize() for topic in TOPICS), "other 0"}
    assert not SearchRecord.objects.exists()
    coverage = {
        it: [row.signals["coverage_passage"] for row in result.measured if row.condition is it]
        for it in (Condition.ANSWERABLE, Condition.ARTICLE_REMOVED)
    }
    # The whole question stands in its passage; without its article its topic stands nowhere.
    assert min(coverage[Condition.ANSWERABLE]) == pytest.approx(1.0)
    assert max(coverage[Condition.ARTICLE_REMOVED]) < 0.9


def test_the_command_tells_all_of_it_and_leaves_nothing_behind(db, collection, other):
    out = StringIO()
    arguments = ["--measure", str(collection), "--other", str(other), "--unseen", str(collection), "--json"]
    call_command("calibrate", *arguments, stdout=out, stderr=StringIO())
    told = json.loads(out.getvalue())
    rows = {row["condition"]: row["auroc"] for row in told["unseen_topics"]["rows"]}
    assert set(rows) == {"adversarial", "passage_removed", "article_removed", "other_domain"}
    assert all(it["low"] <= it["value"] <= it["high"] <= 1 for it in rows.values())
    assert rows["article_removed"]["value"] > 0.9
    assert 0 <= told["unseen_topics"]["error"]["value"] <= 1
    assert set(told["model"]) == {"score_type", "with_sentences", "without_sentences"}
    assert {"same_topics", "without_sentences", "alone", "shipped", "unseen_collection"} <= told.keys()
    assert not Connection.objects.exists()


def test_the_table_names_every_part(db, collection, other):
    out = StringIO()
    call_command("calibrate", "--measure", str(collection), "--keep", stdout=out, stderr=StringIO())
    table = out.getvalue()
    for part in (
        "fitted on other topics",
        "passage removed",
        "calibration error",
        "without sentence cosines",
        "by itself",
    ):
        assert part in table
    assert Connection.objects.count() == 16


def test_a_question_without_an_answer_is_one_that_is_marked_or_unjudged(tmp_path):
    queries = [
        {"_id": "a", "text": "x", "metadata": {"is_impossible": True, "paragraph": "p"}},
        {"_id": "b", "text": "y", "metadata": {"is_impossible": False, "paragraph": "p"}},
        {"_id": "c", "text": "z"},
    ]
    folder = write(tmp_path / "marked", [{"_id": "p", "text": "x"}], queries, [("a", "p"), ("b", "p")])
    assert [(it.answers, it.about) for it in questions_of(load_dataset(folder))] == [((), "p"), (("p",), "p"), ((), "")]


def measured(condition, count, **signals):
    return [Measured(condition, f"{condition} {n}", signals) for n in range(count)]


def test_each_condition_has_its_share_of_the_weight():
    assert sum(SHARES.values()) == pytest.approx(1.0)
    rows = [
        *measured(Condition.ANSWERABLE, 5),
        *measured(Condition.PASSAGE_REMOVED, 2),
        *measured(Condition.ARTICLE_REMOVED, 1),
    ]
    samples = weighted(rows)
    # Of eight, half is the answerable ones'; the other four go 0.2 to 0.06: 4 x 20/26 to two of them, 4 x 6/26 to one.
    assert [it.weight for it in samples] == pytest.approx([*[4 / 5] * 5, *[40 / 26] * 2, 24 / 26])


def test_a_search_that_found_nothing_has_no_confidence():
    rows = [*measured(Condition.ANSWERABLE, 9, cosine_best=0.9), *measured(Condition.OTHER_DOMAIN, 9)]
    confidences = out_of_fold(rows, [it.group for it in rows], quick=False)
    assert list(confidences[9:]) == [0.0] * 9
    assert figures(rows, confidences).rows[0].auroc.value == 1.0
