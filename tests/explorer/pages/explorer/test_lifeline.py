"""What is said of a lifeline."""

import uuid
from dataclasses import replace

import pytest

from corecube.scope import ExcludedConnection, Exclusion, Inclusion, Sensitivity
from explorer.pages.explorer.where import Candidate, announcement, candidates, lifeline_panel, step_label
from explorer.wording import stage_label
from retrieval.records.lifeline.types import Lifeline, Step, StepState, Way
from tests.explorer.conftest import RUNBOOKS, THIRD

LINE = Lifeline(
    document_id=uuid.UUID(int=3),
    title="Rollback policy",
    source="Runbooks",
    steps=(
        Step("indexed", StepState.PASSED, "14 chunks"),
        Step("allowed", StepState.PASSED, "compartment Engineering through group platform"),
        Step("fulltext", StepState.MISSED, "it contains none of it"),
        Step("dedupe", StepState.DROPPED, "lost to its near-duplicate", "A number would retain both."),
        Step("packed", StepState.NOT_REACHED),
    ),
    inclusion=Inclusion(RUNBOOKS, "group platform", Sensitivity.CONFIDENTIAL),
    followed=THIRD,
    ways=(Way("dedupe", 1), Way("floor", 3), Way("", 10)),
)


def test_a_lost_document_says_where_and_what_its_chunks_did():
    panel = lifeline_panel(LINE)
    assert (panel["verdict"], panel["is_packed"], panel["chunks"]) == ("dropped at “deduped”", False, 14)
    assert panel["ways"] == ("1 dropped at “deduped”", "3 dropped at “floor”", "10 found by no leg")
    assert panel["place"] == "Staging, p. 4"
    assert [step["name"] for step in panel["steps"] if step["is_loss"]] == ["dedupe"]


def test_steps_are_called_as_the_funnel_calls_its_stages():
    panel = lifeline_panel(LINE)
    assert [step["label"] for step in panel["steps"]] == ["indexed", "access", "full text", "deduped", "packed"]
    assert [step["word"] for step in panel["steps"]] == ["passed", "passed", "not found", "dropped", "not reached"]
    assert panel["steps"][-1]["fact"] == "not reached"
    assert (step_label("access"), step_label("some_stage")) == (stage_label("access"), "some stage")


def test_access_is_told_with_the_whole_rule():
    assert lifeline_panel(LINE)["steps"][1]["fact"] == (
        "compartment Engineering through group platform; sensitivity internal ≤ clearance confidential"
    )
    shut = replace(
        LINE,
        steps=(LINE.steps[0], Step("allowed", StepState.DROPPED, "outside")),
        inclusion=None,
        exclusion=ExcludedConnection(RUNBOOKS, Exclusion.NO_GRANT),
    )
    panel = lifeline_panel(shut)
    assert (panel["steps"][1]["fact"], panel["is_principals"]) == ("no clearance on compartment Engineering", False)


@pytest.mark.parametrize(
    ("reason", "address"),
    [
        (Exclusion.NO_GRANT, "/access/give/?connection=runbooks"),
        (Exclusion.CLEARANCE, "/access/give/?connection=runbooks"),
        (Exclusion.DISABLED, "/connections/runbooks/"),
    ],
)
def test_what_would_open_a_document_leads_to_where_an_admin_does_it(reason, address):
    steps = (LINE.steps[0], Step("allowed", StepState.DROPPED, "outside", "This gives access."))
    shut = replace(LINE, steps=steps, inclusion=None, exclusion=ExcludedConnection(RUNBOOKS, reason))
    assert [step["remedy_address"] for step in lifeline_panel(shut)["steps"]] == ["", address]


def test_other_remedies_lead_nowhere():
    assert {step["remedy_address"] for step in lifeline_panel(LINE)["steps"]} == {""}


def test_what_may_not_be_named_has_no_page():
    panel = lifeline_panel(replace(LINE, title=""))
    assert (panel["title"], panel["has_page"]) == ("A document", False)


def test_one_chunk_needs_no_count():
    line = replace(LINE, ways=(Way("packed", 1, is_packed=True),), steps=LINE.steps[:2], citation=3)
    assert (lifeline_panel(line)["ways"], lifeline_panel(line)["verdict"]) == ((), "packed as [3]")


def test_what_no_leg_found_is_said_in_one():
    line = replace(LINE, steps=(Step("dense", StepState.DROPPED, "vector rank 214"),), ways=(Way("", 2),))
    assert lifeline_panel(line)["verdict"] == "found by no leg"


def test_candidates_are_named_once_and_cut():
    rows = [Candidate(uuid.UUID(int=number // 2), f"{number}", "Runbooks") for number in range(8)]
    found, has_more = candidates(iter(rows), 3)
    assert ([row.document_id.int for row in found], has_more) == ([0, 1, 2], True)
    assert candidates(iter(rows[:4]), 3)[1] is False


def test_a_screen_reader_is_told_what_came_of_it():
    assert announcement(None, found=0, find="", pin="") == ""
    assert announcement(None, found=0, find="x", pin="") == "0 documents found."
    assert announcement(None, found=0, find="", pin="1") == "Document not found."
    assert announcement(lifeline_panel(LINE), found=0, find="", pin="") == "Rollback policy: dropped at “deduped”."
