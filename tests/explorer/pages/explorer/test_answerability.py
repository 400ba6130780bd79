"""The verdict on the results page."""

import pytest

from retrieval.ranking.answerability.model import shipped
from retrieval.search import calibrations
from tests.fakes import HashEncoder


def page(client, query):
    return client.get("/", {"q": query, "part": "verdict"}).content.decode()


@pytest.mark.parametrize("name", ["alice", "bob"])
def test_the_verdict_stands_above_the_hits_with_its_reason(browse, name):
    html = page(browse(name), "ferries to nowhere")
    assert "not answerable" in html
    assert "Unknown terms." in html
    assert "Not calibrated for this corpus" in html
    assert "Query term coverage, best sentence" in html


def test_charlie_is_told_that_nothing_is_in_scope(browse):
    html = page(browse("charlie"), "rollback")
    assert "Nothing in scope." in html
    assert "zanzibar" not in html


def test_a_calibrated_confidence_is_not_called_uncalibrated(browse):
    figures = {"auroc": 0.9, "ece": 0.0}
    calibrations.store(
        shipped("hash"), preset="corecube", encoder=HashEncoder(), figures=figures, source="ours.jsonl", actor=None
    )
    assert "Not calibrated for this corpus" not in page(browse("bob"), "rollback")


def test_the_words_of_a_query_are_escaped(browse):
    html = page(browse("bob"), "<script>alert(1)</script> zzyzx")
    assert "<script>alert" not in html
