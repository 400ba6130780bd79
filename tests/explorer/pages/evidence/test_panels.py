"""The matrix of sections and source types, from runs made by hand."""

import uuid
from dataclasses import replace

import pytest

from explorer.pages.evidence.views import MAX_HITS, evidence_panel
from retrieval.presets.consolidated.evidence.recovery import Cell, Presence
from retrieval.presets.consolidated.evidence.section_reading import shipped
from retrieval.search.evidence_runs import Evidence, SectionEvidence
from tests.explorer.conftest import FIRST

REPORT = shipped("report")


def section(name):
    return REPORT.section(name)


@pytest.fixture
def evidence(finished):
    """Three sections: one with what it requires, one without, one that the budget had no time for."""
    figures = {"excel": Cell(Presence.RECOVERED, 5, 2), "pdf": Cell(Presence.OPTIONAL, 1)}
    works = {"markdown": Cell(Presence.MISSING), "wiki": Cell(Presence.OPTIONAL, 1_204)}
    rows = (
        SectionEvidence(section("facts_and_figures"), finished, figures),
        SectionEvidence(section("how_it_works"), finished, works),
        SectionEvidence(section("risks"), None, {}, "deadline_exceeded_before_setup", "The time was up."),
    )
    return Evidence(uuid.UUID(int=5), REPORT, "Tallow Quay", rows, 1.5)


def test_a_row_for_each_section_and_a_column_for_each_source_type(evidence):
    panel = evidence_panel(evidence)
    assert panel["columns"] == (*REPORT.precedence, "wiki")
    assert [row["title"] for row in panel["rows"]] == ["Facts and figures", "How it works", "Risks"]
    assert [len(row["cells"]) for row in panel["rows"]] == [len(panel["columns"]), len(panel["columns"]), 0]
    counts = {"found": 0, "recovered": 1, "thin": 0, "missing": 1, "not_looked_for": 0, "optional": 2, "none": 18}
    assert panel["counts"] == counts


def test_a_cell_says_by_words_what_its_colour_says(evidence):
    panel = evidence_panel(evidence)
    excel, pdf = panel["rows"][0]["cells"][:2]
    assert (excel["word"], excel["count"], excel["detail"]) == (
        "recovered",
        5,
        "excel is required; 2 of 5 chunks recovered.",
    )
    assert (pdf["word"], pdf["detail"]) == ("optional", "pdf is not required; 1 chunk found.")
    missing = panel["rows"][1]["cells"][REPORT.precedence.index("markdown")]
    assert (missing["presence"], missing["word"]) == ("missing", "missing")


def test_too_little_and_what_nobody_could_look_for_are_told_apart_from_what_is_missing(evidence):
    cells = {"excel": Cell(Presence.THIN, 1), "pdf": Cell(Presence.NOT_LOOKED_FOR)}
    first = replace(evidence.sections[0], cells=cells)
    panel = evidence_panel(replace(evidence, sections=(first,)))
    thin, unknown = panel["rows"][0]["cells"][:2]
    assert (thin["word"], thin["detail"]) == ("too few", "excel is required; 1 chunk found, 3 needed.")
    assert (unknown["word"], unknown["detail"]) == ("not searched", "pdf is required but could not be searched.")
    assert panel["announcement"] == (
        "1 section: 0 source types missing, 0 recovered. 1 with too few chunks. 1 not searched."
    )


def test_a_section_that_was_not_searched_says_why(evidence):
    row = evidence_panel(evidence)["rows"][2]
    assert (row["trace_id"], row["problem"], row["found"], row["hits"]) == (None, "The time was up.", 0, ())


def test_the_best_hits_stand_below_their_section(evidence, make_outcome):
    many = make_outcome(hits=tuple(replace(FIRST, signals={**FIRST.signals, "recovered": 1.0}) for _ in range(9)))
    first = replace(evidence.sections[0], outcome=many)
    row = evidence_panel(replace(evidence, sections=(first,)))["rows"][0]
    assert (len(row["hits"]), row["found"], row["more"]) == (MAX_HITS, 9, 4)
    assert (row["hits"][0]["source"], row["hits"][0]["source_type"], row["hits"][0]["score"]) == (
        "Runbooks",
        "markdown",
        "0.830",
    )
    assert [badge.text for badge in row["hits"][0]["badges"]] == ["recovered"]


def test_nothing_is_shown_before_its_access_was_checked_again(evidence, make_outcome):
    unchecked = replace(evidence.sections[0], outcome=make_outcome(access_checked=False))
    assert evidence_panel(replace(evidence, sections=(unchecked,)))["rows"][0]["hits"] == ()


def test_the_explorer_asks_for_a_section_again(evidence):
    panel = evidence_panel(evidence, run_as="bob")
    assert panel["rows"][0]["again"] == "preset=consolidated&section=report%2Ffacts_and_figures&q=Tallow+Quay&as=bob"


def test_a_screen_reader_is_told_what_is_missing(evidence):
    assert evidence_panel(evidence)["announcement"] == (
        "3 sections: 1 source type missing, 1 recovered. 1 section not searched."
    )
