"""A section in the Explorer, in its replay and in a comparison."""

import re

import pytest

from retrieval.models import SearchRecord
from retrieval.search.section_sets import copy_section_set, delete_section_set

ASKED = {"q": "rollback", "preset": "consolidated", "section": "report/how_it_works"}
QUERY = "rollback how it works process steps procedure architecture"


def page(response):
    return response.content.decode()


def test_the_picker_is_there_for_a_preset_with_sections_alone(browse):
    alice = browse("alice")
    assert 'name="section"' not in page(alice.get("/", {"q": "rollback"}))
    text = page(alice.get("/", {"q": "rollback", "preset": "consolidated"}))
    assert '<select class="pick-select" name="section" form="ask" data-submits>' in text
    assert '<option value="property_memo/financial_analysis">' in text
    assert '<option value="report/how_it_works" selected>' in page(alice.get("/", ASKED))


def test_the_query_is_the_subject_of_the_section(browse):
    response = browse("alice").get("/", ASKED)
    assert response.status_code == 200
    strip = response.context["section_strip"]
    assert (strip["label"], strip["query"]) == ("Report: How it works", QUERY)
    assert QUERY in page(response)
    record = SearchRecord.objects.get()
    assert (record.query, record.trace["section"], record.trace["subject"]) == (QUERY, ASKED["section"], "rollback")


def test_a_plain_question_says_what_it_asks_for_and_no_section(browse):
    response = browse("alice").get("/", {"q": "rollback staging", "preset": "consolidated"})
    strip = response.context["section_strip"]
    assert strip["label"] == ""
    facts = {label: value for label, value, _ in strip["facts"]}
    assert {"Scope", "Pool grade", "Floors"} <= set(facts)
    panels = response.context["panels"]
    spans = {cell["span"].stage: cell["span"] for cell in panels["funnel"]["cells"]}
    assert facts["Reranked"].startswith(f"{spans['rerank'].hits_in} (limit ")
    assert facts["Retained"] == f"{len(panels['hits'])} (limit 10)"
    assert "section" not in SearchRecord.objects.get().trace


def test_another_preset_knows_no_section(browse):
    response = browse("alice").get("/", {**ASKED, "preset": "corecube"}, follow=True)
    assert "section" not in response.request["QUERY_STRING"]
    assert response.status_code == 200
    assert SearchRecord.objects.get().query == "rollback"


@pytest.mark.parametrize("section", ["nope/overview", "report/nope", "report", "\0"])
def test_a_section_that_there_is_not_is_told(browse, section):
    response = browse("alice").get("/", {**ASKED, "section": section})
    assert response.status_code == 404
    assert "section" in response.context["failure"]["message"]


def test_a_leg_alone_runs_too(browse):
    assert browse("alice").get("/", {**ASKED, "mode": "dense"}).status_code == 200


@pytest.mark.parametrize("tab", ["hits", "lanes", "context", "where", "scores", "trace", "scope"])
def test_every_tab_shows_it(browse, tab):
    response = browse("alice").get("/", {**ASKED, "tab": tab, "find": "rollback"})
    assert response.status_code == 200
    assert response.context["panels"]["hits"]


def test_the_trace_has_the_events_in_words(browse):
    response = browse("alice").get("/", {**ASKED, "tab": "trace"})
    lines = {row["span"].stage: [line.text for line in row["events"]] for row in response.context["panels"]["trace"]}
    assert lines["tighten"][0].startswith("Not cut: ")
    assert lines["rerank"][0].startswith("Scored by SemanticBM25")
    assert lines["rerank"][0] in page(response)


def test_hits_say_what_scored_them(browse):
    hits = browse("alice").get("/", ASKED).context["panels"]["hits"]
    assert {badge.text for hit in hits for badge in hit["badges"]} >= {"scored by SemanticBM25"}


def test_a_logged_section_is_asked_again_and_shown_with_its_events(browse):
    alice = browse("alice")
    alice.get("/", ASKED)
    record = SearchRecord.objects.get()
    response = alice.get(f"/log/{record.pk}/")
    assert (
        response.context["replay"].address == "/explorer/?q=rollback&preset=consolidated&section=report%2Fhow_it_works"
    )
    assert "Report: How it works" in page(response)
    assert "Scored by SemanticBM25" in page(response)
    again = alice.get(response.context["replay"].address)
    assert again.context["section_strip"]["query"] == QUERY


def test_a_section_that_is_gone_cannot_be_asked_again(browse, world):
    copy_section_set("report", new_name="mine", title="Mine", actor=world.alice)
    alice = browse("alice")
    alice.get("/", {**ASKED, "section": "mine/how_it_works"})
    delete_section_set("mine", actor=world.alice)
    response = alice.get(f"/log/{SearchRecord.objects.get().pk}/")
    assert response.context["replay"].obstacle == "Its section no longer exists."


def test_two_runs_of_a_section_stand_beside_each_other(browse):
    sides = {"a": "consolidated:live:hybrid", "b": "corecube:live:hybrid"}
    response = browse("alice").get("/compare/", {**sides, "q": "rollback", "section": "report/how_it_works"})
    assert response.status_code == 200
    compared = response.context["compared"]
    assert (compared["left"].query, compared["right"].query) == (QUERY, QUERY)
    assert [record.trace.get("section") for record in SearchRecord.objects.order_by("preset")] == [
        "report/how_it_works",
        None,
    ]


def test_a_logged_section_stands_against_the_same_now(browse):
    alice = browse("alice")
    alice.get("/", ASKED)
    response = alice.get("/compare/", {"a": f"log:{SearchRecord.objects.get().pk}"})
    compared = response.context["compared"]
    assert (compared["left"].query, compared["right"].query, compared["is_skewed"]) == (QUERY, QUERY, False)
    assert SearchRecord.objects.filter(trace__section="report/how_it_works").count() == 2


def test_where_it_went_names_the_sections_floor(browse, world):
    response = browse("alice").get("/", {**ASKED, "tab": "where", "find": "", "pin": _document(world)})
    line = response.context["where"]["lifeline"]
    assert line is not None
    assert {"floors", "quota", "rerank", "protect"} <= {step["name"] for step in line["steps"]}


def _document(world):
    return world.runbooks.documents.get(external_id="queues.txt").pk


@pytest.mark.parametrize("tab", ["hits", "trace", "where"])
def test_nobody_learns_of_what_they_may_not_see(browse, tab):
    """Bob sees the runbooks alone: no title, number or type of the others stands anywhere."""
    response = browse("bob").get("/", {**ASKED, "q": "costs breach", "tab": tab, "find": "breach"})
    text = page(response)
    for secret in ("Breach of March", "tangerine", "zanzibar", "Finance", "Vault", "Ledger"):
        assert secret not in text
    strip = response.context["section_strip"]
    searched = next(value for label, value, _ in strip["facts"] if label == "Scope")
    assert re.match(r"\d+ chunks? in 2 documents", searched)
